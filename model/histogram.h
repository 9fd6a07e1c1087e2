// Quantiles of positive durations: exact while few differ, in constant memory beyond.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace fulcrum {

/// Keeps runs of equal durations as they are, up to 65 536 of them: quantiles are then exact.
/// Beyond that, bins of equal ratio: a quantile is within half a per cent of the sample's, and
/// between the least and the largest. Durations from 1 us to 10^6 s have bins of their own.
class DurationHistogram {
 public:
  void add(double seconds, double weight = 1.0) {
    // Runs of one duration are common: every request of a batch sees the same gap.
    if (seconds != last_seconds_) {
      last_seconds_ = seconds;
      last_bin_ = bin_of(seconds);
      least_ = total_ > 0.0 ? std::min(least_, seconds) : seconds;
      most_ = std::max(most_, seconds);
      if (exact_) runs_.emplace_back(seconds, 0.0);
      if (runs_.size() > kMostRuns) {
        exact_ = false;
        runs_ = {};
      }
    }
    if (exact_) runs_.back().second += weight;
    counts_[last_bin_] += weight;
    total_ += weight;
    sum_ += weight * seconds;
  }
  double count() const { return total_; }
  double mean() const { return total_ > 0.0 ? sum_ / total_ : 0.0; }
  bool exact() const { return exact_; }
  /// The least duration that `fraction` of the samples do not exceed; 0 without samples.
  double quantile(double fraction) const {
    if (total_ <= 0.0) return 0.0;
    // Sums of weights may fall short of the total by rounding.
    const double wanted = fraction * total_ * (1.0 - 1e-12);
    double seen = 0.0;
    if (exact_) {
      std::vector<std::pair<double, double>> sorted = runs_;
      std::sort(sorted.begin(), sorted.end());
      for (const auto& [seconds, weight] : sorted) {
        seen += weight;
        if (seen >= wanted) return seconds;
      }
      return most_;
    }
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > 0.0 && seen + counts_[i] >= wanted) {
        const double place = (wanted - seen) / counts_[i];
        return std::clamp(kLeast * std::exp((static_cast<double>(i) + place) * kLogStep), least_,
                          most_);
      }
      seen += counts_[i];
    }
    return most_;
  }

 private:
  static constexpr double kLeast = 1e-6;
  static constexpr double kLogStep = 0.01;
  static constexpr std::size_t kBins = 2764;  // ln(1e12) / 0.01
  static constexpr std::size_t kMostRuns = 65536;
  static std::size_t bin_of(double seconds) {
    const double position = std::log(std::max(seconds, kLeast) / kLeast) / kLogStep;
    return std::min(static_cast<std::size_t>(position), kBins - 1);
  }
  std::vector<double> counts_ = std::vector<double>(kBins, 0.0);
  std::vector<std::pair<double, double>> runs_;  ///< duration and weight
  bool exact_ = true;
  double total_ = 0.0;
  double sum_ = 0.0;
  double least_ = 0.0;
  double most_ = 0.0;
  double last_seconds_ = -1.0;
  std::size_t last_bin_ = 0;
};

}  // namespace fulcrum
