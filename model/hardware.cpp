#include "model/hardware.h"

namespace fulcrum {

const Link* Hardware::link(Topology topology) const {
  for (const Link& candidate : links) {
    if (candidate.topology == topology) return &candidate;
  }
  return nullptr;
}

LawDevice law_device(const Hardware& hardware, const Link* link) {
  constexpr double kMega = 1e6;
  constexpr double kGiga = 1e9;
  constexpr double kTera = 1e12;
  constexpr double kMebi = 1024.0 * 1024.0;
  LawDevice device;
  device.num_sms = hardware.num_sms.value;
  device.sm_clock_hertz = hardware.sm_clock_mhz.value * kMega;
  device.dram_bandwidth_bytes_per_second = hardware.memory_bandwidth_gb_per_s.value * kGiga;
  device.l2_bytes = hardware.l2_mib.value * kMebi;
  double wider = 0.0;
  for (std::size_t format = 0; format < kNumNumberFormats; ++format) {
    const auto& peak = hardware.peak_dense_tflop_per_s[format];
    if (peak) wider = peak->value * kTera;
    device.peak_flop_per_second[format] = wider;
  }
  if (link != nullptr) {
    device.link_bandwidth_bytes_per_second = link->bandwidth_gb_per_s_per_direction.value * kGiga;
  }
  return device;
}

}  // namespace fulcrum
