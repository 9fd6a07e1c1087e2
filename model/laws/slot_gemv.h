// Routed experts as one GEMV per (token, expert) slot (SGLang June 2026 on SM120,
// `_mxfp4_slot_gemv_kernel`): one program per slot and block of output columns, BF16 activations,
// no reuse between tokens. Two launches, gate_up and down.
//   slots  = tokens x k x local share           (not the distinct experts: each slot reads again)
//   reads  = slots x expert bytes, of which the distinct ones come from DRAM and repeats from L2
//   t = 2 t0 + sum over the two GEMVs of smooth_max(
//         distinct bytes / (eta_m B) + repeat bytes / (speedup eta_m B),
//         ceil(slots x ceil(N / columns) / SMs) x K x cycles_per_k / clock )
// Derived from the roofline; no table of this kernel exists. Launch floor and bandwidth share are
// those of its Triton neighbours on the same GPU; cycles_per_k (unpack, multiply, reduce, per
// element of k and program) is assumed: price it with a wide error. Leaves out: order of the
// programs (repeats far apart in the grid may have left L2), SwiGLU, sum.
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/law_math.h"
#include "model/laws/parameter_info.h"
#include "model/laws/routing.h"

namespace fulcrum {

template <class Real>
struct SlotGemvLaw {
  Real launch_floor_seconds{};
  Real memory_efficiency{};
  Real repeat_speedup{};  ///< rate of repeated expert reads over DRAM's; 1 if L2 never helps
  Real cycles_per_k{};

  static SlotGemvLaw from(std::span<const Real, 4> p) { return {p[0], p[1], p[2], p[3]}; }
};

inline constexpr double kSlotGemvColumns = 128.0;  ///< output columns of one program

/// memory_efficiency: fp8 GEMV of the same GPU's GEMM tables (1104 of 1597 GB/s); repeat_speedup:
/// the resident speed-up of its MoE tables; cycles_per_k: 128 columns on 128 lanes, 4 to 16
/// instructions per element to unpack and multiply.
inline constexpr std::array<ParameterInfo, 4> kSlotGemvParameters{{
    {"launch_floor_seconds", "s", 1e-6, 1e-4, 3e-6, Transfer::kTime},
    {"memory_efficiency", "1", 0.1, 1.0, 0.69, Transfer::kDimensionless},
    {"repeat_speedup", "1", 1.0, 5.0, 2.0, Transfer::kDimensionless},
    {"cycles_per_k", "1", 1.0, 64.0, 8.0, Transfer::kDimensionless},
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
    const Real compute =
        std::ceil(programs / device.num_sms) * k / device.sm_clock_hertz * law.cycles_per_k;
    return smooth_max(memory, compute);
  };
  return 2.0 * law.launch_floor_seconds +
         gemv(launch.gated ? 2.0 * launch.inter : launch.inter, launch.hidden) +
         gemv(launch.hidden, launch.inter);
}

}  // namespace fulcrum
