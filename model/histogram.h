// Quantiles of positive durations in constant memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace fulcrum {

/// Counts durations in bins of equal ratio: a quantile is within half a per cent of the sample's.
/// Durations from 1 us to 10^6 s; shorter and longer ones fall into the end bins.
class DurationHistogram {
 public:
  void add(double seconds, double weight = 1.0) {
    // Runs of one duration are common: every request of a batch sees the same gap.
    if (seconds != last_seconds_) {
      last_seconds_ = seconds;
      last_bin_ = bin_of(seconds);
    }
    counts_[last_bin_] += weight;
    total_ += weight;
    sum_ += weight * seconds;
  }
  double count() const { return total_; }
  double mean() const { return total_ > 0.0 ? sum_ / total_ : 0.0; }
  /// The duration below which `fraction` of the samples lie; 0 without samples.
  double quantile(double fraction) const {
    if (total_ <= 0.0) return 0.0;
    double seen = 0.0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= fraction * total_) {
        return kLeast * std::exp((static_cast<double>(i) + 0.5) * kLogStep);
      }
    }
    return kLeast;
  }

 private:
  static constexpr double kLeast = 1e-6;
  static constexpr double kLogStep = 0.01;
  static constexpr std::size_t kBins = 2764;  // ln(1e12) / 0.01
  static std::size_t bin_of(double seconds) {
    const double position = std::log(std::max(seconds, kLeast) / kLeast) / kLogStep;
    return std::min(static_cast<std::size_t>(position), kBins - 1);
  }
  std::vector<double> counts_ = std::vector<double>(kBins, 0.0);
  double total_ = 0.0;
  double sum_ = 0.0;
  double last_seconds_ = -1.0;
  std::size_t last_bin_ = 0;
};

}  // namespace fulcrum
