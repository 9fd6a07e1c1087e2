// A quantity with its 90 % interval.
#pragma once

#include <cmath>

namespace fulcrum {

struct Interval {
  double p05 = 0.0;
  double p50 = 0.0;
  double p95 = 0.0;
};

inline constexpr double kNormalP95 = 1.6448536269514722;  ///< standard normal quantile at 0.95

/// Interval of a positive quantity whose logarithm is normal about log(median).
inline Interval log_normal_interval(double median, double log_sigma) {
  const double factor = std::exp(kNormalP95 * log_sigma);
  return {median / factor, median, median * factor};
}

}  // namespace fulcrum
