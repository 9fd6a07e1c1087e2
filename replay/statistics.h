// Order statistics of timing samples: medians with a distribution-free confidence interval.
#pragma once

#include <cstddef>
#include <span>

namespace fulcrum::replay {

struct SampleSummary {
  std::size_t num_samples = 0;
  double median_seconds = 0;
  double mad_seconds = 0;  // Median absolute deviation from the median.
  double p10_seconds = 0;
  double p90_seconds = 0;
  double ci_low_seconds = 0;  // 95 % confidence interval of the median.
  double ci_high_seconds = 0;
  // Half of the interval over the median: what the stopping rule looks at.
  double relative_half_width() const {
    return median_seconds > 0 ? 0.5 * (ci_high_seconds - ci_low_seconds) / median_seconds : 0;
  }
};

// The interval comes from the binomial distribution of ranks (normal approximation, ranks
// n/2 -+ 1.96 sqrt(n)/2), so it holds for any continuous distribution. Zeroes for an empty span.
SampleSummary summarize(std::span<const double> seconds);

struct StoppingRule {
  std::size_t min_samples = 15;
  std::size_t max_samples = 300;
  double relative_half_width = 0.005;
  double max_total_seconds = 2.0;  // Of measured device time per entry.
};

enum class StopReason { kContinue, kConverged, kMaxSamples, kMaxTime };
StopReason should_stop(const StoppingRule& rule, const SampleSummary& summary,
                       double total_seconds);
const char* to_string(StopReason reason);

// A set is noisy when it did not converge and its middle 80 % spreads over more than this share of
// the median.
inline constexpr double kNoisySpread = 0.10;
bool is_noisy(const SampleSummary& summary, StopReason reason);

}  // namespace fulcrum::replay
