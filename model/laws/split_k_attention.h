// Sparse MLA decode on tensor cores with the rows split over CTAs (FlashMLA on SM90): work is
// spread evenly, so time follows the live rows.
//   FLOP  = tokens x heads x rows x 4 head_dim            (scores and weighted sum; K = V)
//   bytes = padded queries, partial and final outputs: passes x tokens x heads x head_dim x 2
//           + rows x row_bytes per token
//   t = t0 + FLOP / (eta_c P_bf16) + bytes / (eta_m B)
// The two terms add: the query padding, rotation and copies are launches of their own.
// Leaves out: wave effects of the tile scheduler, L2 hits on rows that requests share.
#pragma once

#include <array>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/parameter_info.h"

namespace fulcrum {

template <class Real>
struct SplitKAttentionLaw {
  Real launch_floor_seconds{};
  Real compute_efficiency{};
  Real query_passes{};       ///< times the padded queries cross DRAM at peak bandwidth
  Real memory_efficiency{};  ///< of the row reads

  static SplitKAttentionLaw from(std::span<const Real, 4> p) { return {p[0], p[1], p[2], p[3]}; }
};

/// Start values: fit to the H200 module tables of aiconfigurator.
inline constexpr std::array<ParameterInfo, 4> kSplitKAttentionParameters{{
    {"launch_floor_seconds", "s", 1e-7, 2e-4, 5e-6, Transfer::kTime},
    {"compute_efficiency", "1", 0.01, 1.0, 0.66, Transfer::kDimensionless},
    {"query_passes", "1", 0.1, 100.0, 6.0, Transfer::kDimensionless},
    {"memory_efficiency", "1", 0.05, 1.2, 0.8, Transfer::kDimensionless},
}};

template <class Real>
Real split_k_attention_seconds(const SplitKAttentionLaw<Real>& law, const AttentionLaunch& launch,
                               const LawDevice& device) {
  const double rows = launch.window_rows + launch.selected_rows;
  const double flop = launch.tokens * launch.heads * rows * 4.0 * launch.head_dim;
  const double query_bytes = launch.tokens * launch.heads * launch.head_dim * 2.0;
  const double row_bytes = launch.tokens * rows * launch.row_bytes;
  const double bandwidth = device.dram_bandwidth_bytes_per_second;
  return law.launch_floor_seconds +
         flop / device.peak(NumberFormat::kBf16) / law.compute_efficiency +
         query_bytes / bandwidth * law.query_passes + row_bytes / bandwidth / law.memory_efficiency;
}

}  // namespace fulcrum
