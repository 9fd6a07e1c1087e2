#include "model/io/load_hardware.h"

#include <array>
#include <string_view>

#include "model/io/json_reader.h"

namespace fulcrum::io {
namespace {

constexpr std::array<std::string_view, kNumNumberFormats> kFormatKeys{"fp32", "tf32", "bf16", "fp8",
                                                                      "fp4"};
constexpr std::array<std::string_view, 3> kTopologies{"pcie_switch", "dual_socket", "nvlink"};

Link read_link(JsonObject& object) {
  Link link;
  link.topology = static_cast<Topology>(object.choice("topology", kTopologies));
  link.bandwidth_gb_per_s_per_direction =
      object.sourced("bandwidth_gb_per_s_per_direction", kPositive);
  link.latency_us = object.sourced("latency_us", kNonNegative);
  return link;
}

}  // namespace

Hardware load_hardware(const std::string& path) {
  const nlohmann::json value = read_json_file(path);
  std::vector<InputProblem> problems;
  JsonObject object(value, path, "", problems);
  throw_if_any(problems);

  Hardware hardware;
  object.schema("fulcrum/hardware/1");
  hardware.name = object.string("name");
  hardware.label = object.string("label");
  hardware.compute_capability = object.string("compute_capability");
  hardware.num_sms = object.sourced("num_sms", Range{1, 1e4});
  hardware.sm_clock_mhz = object.sourced("sm_clock_mhz", kPositive);
  hardware.tensor_clock_mhz = object.optional_sourced("tensor_clock_mhz", kPositive);
  hardware.fp32_lanes_per_sm = object.sourced("fp32_lanes_per_sm", kPositive);
  hardware.tensor_flop_per_cycle_per_sm_bf16 =
      object.sourced("tensor_flop_per_cycle_per_sm_bf16", kPositive);
  hardware.memory_bandwidth_gb_per_s = object.sourced("memory_bandwidth_gb_per_s", kPositive);
  hardware.memory_bus_bits = object.optional_sourced("memory_bus_bits", kPositive);
  hardware.memory_data_rate_gbit_per_s_per_pin =
      object.optional_sourced("memory_data_rate_gbit_per_s_per_pin", kPositive);
  hardware.memory_capacity_mib = object.sourced("memory_capacity_mib", kPositive);
  hardware.l2_mib = object.sourced("l2_mib", kPositive);
  object.object("peak_dense_tflop_per_s", [&](JsonObject& peaks) {
    for (std::size_t i = 0; i < kNumNumberFormats; ++i) {
      hardware.peak_dense_tflop_per_s[i] = peaks.optional_sourced(kFormatKeys[i], kPositive);
    }
    if (!hardware.peak_dense_tflop_per_s[0]) {
      peaks.problem("fp32", "is missing", "the FP32 rate of the CUDA cores");
    }
  });
  hardware.power_cap_w = object.sourced("power_cap_w", kPositive);
  hardware.pcie_gb_per_s_per_direction =
      object.optional_sourced("pcie_gb_per_s_per_direction", kPositive);
  hardware.smem_per_sm_kib = object.optional_sourced("smem_per_sm_kib", kPositive);
  hardware.smem_per_block_kib = object.optional_sourced("smem_per_block_kib", kPositive);
  hardware.max_warps_per_sm = object.optional_sourced("max_warps_per_sm", kPositive);
  hardware.max_blocks_per_sm = object.optional_sourced("max_blocks_per_sm", kPositive);
  hardware.registers_per_sm = object.optional_sourced("registers_per_sm", kPositive);
  object.objects("links", [&](JsonObject& link) { hardware.links.push_back(read_link(link)); });
  object.reject_unknown();
  throw_if_any(problems);
  return hardware;
}

}  // namespace fulcrum::io
