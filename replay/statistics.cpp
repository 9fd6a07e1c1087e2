#include "replay/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fulcrum::replay {
namespace {

// Linear interpolation between order statistics; `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (position - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

SampleSummary summarize(std::span<const double> seconds) {
  SampleSummary summary;
  summary.num_samples = seconds.size();
  if (seconds.empty()) return summary;
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::ranges::sort(sorted);
  summary.median_seconds = quantile(sorted, 0.5);
  summary.p10_seconds = quantile(sorted, 0.1);
  summary.p90_seconds = quantile(sorted, 0.9);
  const double n = static_cast<double>(sorted.size());
  const double half = 0.5 * 1.959964 * std::sqrt(n);
  const double low = std::floor(0.5 * n - half);
  const double high = std::ceil(0.5 * n + half);
  summary.ci_low_seconds = sorted[static_cast<std::size_t>(std::max(0.0, low))];
  summary.ci_high_seconds = sorted[static_cast<std::size_t>(std::min(n - 1.0, high))];
  std::vector<double> deviations(sorted.size());
  std::ranges::transform(sorted, deviations.begin(),
                         [&](double x) { return std::abs(x - summary.median_seconds); });
  std::ranges::sort(deviations);
  summary.mad_seconds = quantile(deviations, 0.5);
  return summary;
}

StopReason should_stop(const StoppingRule& rule, const SampleSummary& summary,
                       double total_seconds) {
  if (summary.num_samples >= rule.min_samples &&
      summary.relative_half_width() <= rule.relative_half_width) {
    return StopReason::kConverged;
  }
  if (summary.num_samples >= rule.max_samples) return StopReason::kMaxSamples;
  // Three samples are the least that a median and a spread can be read from.
  if (summary.num_samples >= 3 && total_seconds >= rule.max_total_seconds) {
    return StopReason::kMaxTime;
  }
  return StopReason::kContinue;
}

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kContinue:
      return "continue";
    case StopReason::kConverged:
      return "converged";
    case StopReason::kMaxSamples:
      return "max_samples";
    case StopReason::kMaxTime:
      return "max_time";
  }
  return "unknown";
}

bool is_noisy(const SampleSummary& summary, StopReason reason) {
  return reason != StopReason::kConverged &&
         summary.p90_seconds - summary.p10_seconds > kNoisySpread * summary.median_seconds;
}

}  // namespace fulcrum::replay
