// Sparse MLA decode as a row loop on CUDA cores (SGLang June 2026 on SM120,
// `_tiled_sparse_decode_kernel`): one CTA per (token, launched head) walks all padded rows,
// re-reading them for every head.
//   CTAs = tokens x heads, waves = ceil(CTAs / SMs)
//   t = t0 + (waves + tail) x rows x cycles_per_row / clock
// The grid is what makes the kernel grow with batch and not with context; `tail` is the part of a
// CTA (fill, merge) that later waves do not hide. Holds for one resident CTA's worth of work per
// SM: more residents share the same ALUs and take proportionally longer. Leaves out: DRAM and L2
// traffic (the rows of one request stay in L2), split softmax merging.
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/parameter_info.h"

namespace fulcrum {

template <class Real>
struct RowLoopAttentionLaw {
  Real launch_floor_seconds{};
  Real cycles_per_row{};
  Real tail_waves{};

  static RowLoopAttentionLaw from(std::span<const Real, 3> p) { return {p[0], p[1], p[2]}; }
};

/// Start values: fit to the RTX PRO 6000 module tables of aiconfigurator (560 +- 25 cycles
/// or 230 ns a row, 0.13 +- 0.03 waves).
inline constexpr std::array<ParameterInfo, 3> kRowLoopAttentionParameters{{
    {"launch_floor_seconds", "s", 1e-7, 2e-4, 2.7e-6, Transfer::kTime},
    {"cycles_per_row", "1", 8.0, 1e4, 580.0, Transfer::kDimensionless},
    {"tail_waves", "1", 1e-3, 1.0, 0.12, Transfer::kDimensionless},
}};

template <class Real>
Real row_loop_attention_seconds(const RowLoopAttentionLaw<Real>& law, const AttentionLaunch& launch,
                                const LawDevice& device) {
  const double waves = std::ceil(launch.tokens * launch.heads / device.num_sms);
  const double rows = launch.padded_window_rows + launch.padded_selected_rows;
  return law.launch_floor_seconds +
         (waves + law.tail_waves) * law.cycles_per_row * (rows / device.sm_clock_hertz);
}

}  // namespace fulcrum
