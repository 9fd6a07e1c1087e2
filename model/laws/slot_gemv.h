// Routed experts as one GEMV per (token, expert) slot (SGLang June 2026 on SM120,
// `_mxfp4_slot_gemv_kernel` in mxfp4_moe_sm120_triton.py): one program per slot and block of 64
// output columns walks all of k, BF16 activations, no reuse between tokens. Two launches, gate_up
// and down.
//   slots = tokens x k x local share       (not the distinct experts: each slot reads and unpacks)
//   t = 2 t0 + sum over the two GEMVs of smooth_max(
//         (distinct bytes + repeat bytes / speedup) / (eta_m B),
//         ceil(slots x ceil(N / 64) / SMs) x K x cycles_per_k / clock )
// No table of this kernel exists, so cycles_per_k is reasoned, and priced with a wide error: E2M1
// has no conversion on these paths; a nibble costs about 12 instructions (shift, mask, sign and
// exponent selects, scale, multiply-add), 64 columns over 4 warps are 6 instructions a lane and k,
// and one program per SM leaves one warp per scheduler, which issues dependent instructions about
// every 4.5 cycles: 12 x 64 / 128 x 4.5 = 27.
// Leaves out: order of the programs (repeats far apart in the grid may have left L2), SwiGLU, sum.
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/law_math.h"
#include "model/laws/parameter_info.h"

namespace fulcrum {

template <class Real>
struct SlotGemvLaw {
  Real launch_floor_seconds{};
  Real memory_efficiency{};
  Real repeat_speedup{};  ///< rate of repeated expert reads over DRAM's; 1 if L2 never helps
  Real cycles_per_k{};    ///< per element of k of one program

  static SlotGemvLaw from(std::span<const Real, 4> p) { return {p[0], p[1], p[2], p[3]}; }
};

/// Most of the kernel's autotune menu (BLOCK_N 32, 64, 64, 128).
inline constexpr double kSlotGemvColumns = 64.0;

/// memory_efficiency: per-tensor FP8 GEMV of the same GPU's GEMM tables (1104 of 1597 GB/s);
/// repeat_speedup: resident_speedup of its fused MoE tables; cycles_per_k: see above.
inline constexpr std::array<ParameterInfo, 4> kSlotGemvParameters{{
    {"launch_floor_seconds", "s", 1e-6, 1e-4, 3e-6, Transfer::kTime},
    {"memory_efficiency", "1", 0.1, 1.0, 0.69, Transfer::kDimensionless},
    {"repeat_speedup", "1", 1.0, 5.0, 2.0, Transfer::kDimensionless},
    {"cycles_per_k", "1", 4.0, 200.0, 75.0, Transfer::kDimensionless},
}};

/// `distinct_experts`: expected_distinct_experts(launch) or RoutedWork::active_experts.
template <class Real>
Real slot_gemv_seconds(const SlotGemvLaw<Real>& law, const MoeLaunch& launch,
                       double distinct_experts, const LawDevice& device) {
  const double slots = launch.tokens * launch.top_k * launch.local_experts / launch.num_experts;
  const double repeats = slots > distinct_experts ? slots - distinct_experts : 0.0;
  const Real rate = law.memory_efficiency * device.dram_bandwidth_bytes_per_second;
  const auto gemv = [&](double n, double k) {
    const double expert_bytes = n * k * launch.weight_bits / 8.0;
    const Real memory = expert_bytes * (distinct_experts + repeats / law.repeat_speedup) / rate;
    const double programs = slots * std::ceil(n / kSlotGemvColumns);
    const Real unpack =
        std::ceil(programs / device.num_sms) * k / device.sm_clock_hertz * law.cycles_per_k;
    return smooth_max(memory, unpack);
  };
  return 2.0 * law.launch_floor_seconds +
         gemv(launch.gated ? 2.0 * launch.inter : launch.inter, launch.hidden) +
         gemv(launch.hidden, launch.inter);
}

}  // namespace fulcrum
