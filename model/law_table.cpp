#include "model/law_table.h"

#include <array>

#include "model/tally.h"

namespace fulcrum {
namespace {

double seconds_of(const FusedLaw&, const Launch&, const LawDevice&) { return 0.0; }

double seconds_of(const RooflineLaw<double>& law, const Launch& launch, const LawDevice& device) {
  const Tally t = tally(launch);
  double memory_seconds = t.dram().value() / device.dram_bandwidth_bytes_per_second;
  if (device.link_bandwidth_bytes_per_second > 0.0) {
    memory_seconds += t.message.value() / device.link_bandwidth_bytes_per_second;
  }
  return roofline_seconds(law, memory_seconds, t.flop.value() / device.peak(t.unit));
}

constexpr std::array<LawInfo, 1> kLaws{{
    {"roofline", kRooflineParameters,
     [](std::span<const double> p) -> Law { return RooflineLaw<double>::from(p.first<3>()); },
     [](const Launch&) { return true; }},
}};

}  // namespace

std::span<const LawInfo> law_table() { return kLaws; }

const LawInfo* find_law(std::string_view name) {
  for (const LawInfo& law : kLaws) {
    if (law.name == name) return &law;
  }
  return nullptr;
}

double law_seconds(const Law& law, const Launch& launch, const LawDevice& device) {
  return std::visit([&](const auto& cost) { return seconds_of(cost, launch, device); }, law);
}

}  // namespace fulcrum
