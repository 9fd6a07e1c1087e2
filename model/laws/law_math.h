// Smooth pieces that several laws share. All are differentiable in their parameters, so that the
// calibrator's gradients exist on both sides of a limit.
#pragma once

#include <cmath>
#include <limits>

namespace fulcrum {

/// Weights that nobody touched since they last left the cache: a cold launch.
inline constexpr double kNeverReused = std::numeric_limits<double>::infinity();

/// (a^4 + b^4)^(1/4) for a, b >= 0, not both 0: the larger where one dominates, 19 % above it at a
/// tie, where two limits do hinder one another.
template <class Real>
Real smooth_max(const Real& a, const Real& b) {
  using std::sqrt;
  const Real& large = a < b ? b : a;
  const Real& small = a < b ? a : b;
  const Real ratio = small / large;
  const Real squared = ratio * ratio;
  return large * sqrt(sqrt(1.0 + squared * squared));
}

/// Share of bytes still in a cache of `cache_bytes` when they are used again after
/// `reuse_distance_bytes` of other traffic: 1 / (1 + (distance / cache)^16). The exponent is a
/// convention: steep enough for a cyclic walk, which either fits or misses (the MoE tables go from
/// L2 to DRAM rates between 100 and 150 MB on a 134 MB cache), and finite.
template <class Real>
Real resident_share(double reuse_distance_bytes, const Real& cache_bytes) {
  if (reuse_distance_bytes == kNeverReused) return Real(0.0);
  const Real x1 = reuse_distance_bytes / cache_bytes;
  const Real x2 = x1 * x1;
  const Real x4 = x2 * x2;
  const Real x8 = x4 * x4;
  return 1.0 / (1.0 + x8 * x8);
}

}  // namespace fulcrum
