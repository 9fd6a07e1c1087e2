// What a law leaves over and neighbouring shapes share: a smooth, bounded factor learned on
// measured rows, log(measured / law) as a weighted sum of bumps at nodes in feature space (F-space
// units: one is the distance over which the factor may change).
//
//   correction(x) = clamp(sum_j weight_j bump(|x - node_j|), +-kLogCorrectionBound)
//   bump(d)       = (1 + sqrt(3) d) exp(-sqrt(3) d)              (Matern 3/2)
//
// It dies away from the nodes, so that beyond the measured range the law stands alone. Leaves out:
// jumps between neighbours (a library's choice of kernel), which are noise to it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "model/laws/launches.h"

namespace fulcrum {

/// |log factor| a correction may reach (a factor of 1.28): what is further off is the law's failure
/// and stays visible as such.
inline constexpr double kLogCorrectionBound = 0.25;

struct LogCorrection {
  std::size_t num_features = 0;
  std::vector<double> nodes;    ///< [num_nodes, num_features]
  std::vector<double> weights;  ///< [num_nodes], log factor

  bool empty() const { return weights.empty(); }
};

struct CorrectionAt {
  double log_factor = 0.0;
  double nearness = 0.0;  ///< bump at the nearest node: 1 on it, 0 far from all
};

/// O(num_nodes); `features` has num_features entries.
inline CorrectionAt evaluate(const LogCorrection& correction, std::span<const double> features) {
  CorrectionAt at;
  double sum = 0.0;
  const double* node = correction.nodes.data();
  for (const double weight : correction.weights) {
    double squared = 0.0;
    for (const double x : features) {
      const double d = x - *node++;
      squared += d * d;
    }
    const double d = std::sqrt(3.0 * squared);
    const double bump = (1.0 + d) * std::exp(-d);
    sum += weight * bump;
    at.nearness = std::max(at.nearness, bump);
  }
  at.log_factor = std::clamp(sum, -kLogCorrectionBound, kLogCorrectionBound);
  return at;
}

// Feature spaces. Sizes enter by their logarithms; the divisors are the octaves over which the
// residuals of the public tables stay alike (those of half the length correct no better on shapes
// held out).

inline constexpr std::size_t kNumGemmFeatures = 3;
inline std::array<double, kNumGemmFeatures> gemm_features(const GemmLaunch& launch) {
  return {std::log2(launch.m) / 2.0, std::log2(launch.n) / 3.0, std::log2(launch.k) / 3.0};
}

/// Rows per expert, tokens, widths, experts, and which routing and activation a row ran.
inline constexpr std::size_t kNumMoeFeatures = 7;
inline std::array<double, kNumMoeFeatures> moe_features(const MoeLaunch& launch) {
  return {std::log2(launch.tokens * launch.top_k / launch.num_experts) / 2.0,
          std::log2(launch.tokens) / 4.0,
          std::log2(launch.hidden) / 2.0,
          std::log2(launch.inter) / 2.0,
          std::log2(launch.local_experts) / 2.0,
          launch.routing == Routing::kPowerLaw ? 1.0 : 0.0,
          launch.gated ? 0.0 : 1.0};
}

}  // namespace fulcrum
