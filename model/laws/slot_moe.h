// Routed experts as one GEMV per (token, expert) slot on CUDA cores (SGLang June 2026 on SM120,
// `_mxfp4_slot_gemv_kernel`): every slot walks its expert's weights; tokens share nothing.
//   slots = tokens x top_k x local / experts,  w = weights of one expert on this rank
//   dram    distinct experts x bytes / (eta B)     a repeated expert comes from L2
//   l2      slots x bytes / (rho B)
//   issue   slots x w x instructions / (lanes x clock)   unpack, scale, multiply-add
//   t = t0 + max(dram, l2, issue)
// Leaves out: experts that fall out of L2 between their slots, waves of short blocks.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/law_device.h"
#include "model/laws/parameter_info.h"
#include "model/laws/routing.h"

namespace fulcrum {

template <class Real>
struct SlotMoeLaw {
  Real launch_floor_seconds{};
  Real dram_efficiency{};
  Real l2_bandwidth_ratio{};  ///< to peak DRAM bandwidth
  Real instructions_per_weight{};

  static SlotMoeLaw from(std::span<const Real, 4> p) { return {p[0], p[1], p[2], p[3]}; }
};

inline constexpr std::array<ParameterInfo, 4> kSlotMoeParameters{{
    {"launch_floor_seconds", "s", 1e-7, 1e-3, 1e-5, Transfer::kTime},
    {"dram_efficiency", "1", 0.05, 1.0, 0.5, Transfer::kDimensionless},
    {"l2_bandwidth_ratio", "1", 0.3, 15.0, 3.0, Transfer::kDimensionless},
    {"instructions_per_weight", "1", 0.25, 64.0, 4.0, Transfer::kDimensionless},
}};

template <class Real>
Real slot_moe_seconds(const SlotMoeLaw<Real>& law, const MoeLaunch& launch,
                      const LawDevice& device) {
  const double slots = launch.tokens * launch.top_k * launch.local_experts / launch.num_experts;
  const double weights = (launch.gated ? 3.0 : 2.0) * launch.inter * launch.hidden;
  const double expert_seconds =
      weights * launch.weight_bits / 8.0 / device.dram_bandwidth_bytes_per_second;
  // Each FP32 lane retires one fused multiply-add, two FLOP, a cycle.
  const double lane_operations_per_second = device.peak(NumberFormat::kFp32) / 2.0;
  const Real dram = expected_distinct_experts(launch) * expert_seconds / law.dram_efficiency;
  const Real l2 = slots * expert_seconds / law.l2_bandwidth_ratio;
  const Real issue = slots * weights / lane_operations_per_second * law.instructions_per_weight;
  const Real longest = dram < l2 ? (l2 < issue ? issue : l2) : (dram < issue ? issue : dram);
  return law.launch_floor_seconds + longest;
}

}  // namespace fulcrum
