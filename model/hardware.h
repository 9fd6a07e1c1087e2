// One GPU model and its links, as data/hardware/*.json describes it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/laws/law_device.h"
#include "model/provenance.h"

namespace fulcrum {

/// How the GPUs of one host reach each other.
enum class Topology { kPcieSwitch, kDualSocket, kNvlink };

struct Link {
  Topology topology = Topology::kPcieSwitch;
  Sourced bandwidth_gb_per_s_per_direction;
  Sourced latency_us;
};

struct Hardware {
  std::string name;   ///< file stem, e.g. "rtx-pro-6000-server"
  std::string label;  ///< the vendor's name
  std::string compute_capability;
  Sourced num_sms;
  Sourced sm_clock_mhz;
  std::optional<Sourced> tensor_clock_mhz;  ///< where the tensor peak is quoted at another clock
  Sourced fp32_lanes_per_sm;
  Sourced tensor_flop_per_cycle_per_sm_bf16;
  Sourced memory_bandwidth_gb_per_s;
  std::optional<Sourced> memory_bus_bits;
  std::optional<Sourced> memory_data_rate_gbit_per_s_per_pin;
  Sourced memory_capacity_mib;
  Sourced l2_mib;
  /// Dense TFLOP/s by NumberFormat; nothing where the device has no such unit.
  std::array<std::optional<Sourced>, kNumNumberFormats> peak_dense_tflop_per_s;
  Sourced power_cap_w;
  std::optional<Sourced> pcie_gb_per_s_per_direction;
  std::optional<Sourced> smem_per_sm_kib;
  std::optional<Sourced> smem_per_block_kib;
  std::optional<Sourced> max_warps_per_sm;
  std::optional<Sourced> max_blocks_per_sm;
  std::optional<Sourced> registers_per_sm;
  std::vector<Link> links;

  const Link* link(Topology topology) const;
};

/// The view the laws take. A format without a unit gets the rate of the next wider one that exists
/// (FP4 runs as FP8 or BF16 after dequantisation), so a roofline bound stays a bound.
LawDevice law_device(const Hardware& hardware, const Link* link);

}  // namespace fulcrum
