#include "replay/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace fulcrum::replay {
namespace {

TEST(Statistics, MedianAndMadOfAWorkedExample) {
  // Sorted: 1 2 3 4 10. Median 3; deviations 0 1 1 2 7, their median 1.
  const std::vector<double> seconds = {4, 1, 10, 2, 3};
  const SampleSummary s = summarize(seconds);
  EXPECT_EQ(s.num_samples, 5u);
  EXPECT_DOUBLE_EQ(s.median_seconds, 3);
  EXPECT_DOUBLE_EQ(s.mad_seconds, 1);
  EXPECT_DOUBLE_EQ(s.p10_seconds, 1.4);  // Position 0.4 between 1 and 2.
  EXPECT_DOUBLE_EQ(s.p90_seconds, 7.6);  // Position 3.6 between 4 and 10.
}

TEST(Statistics, NoSamplesGiveZeroes) {
  const SampleSummary s = summarize({});
  EXPECT_EQ(s.num_samples, 0u);
  EXPECT_EQ(s.median_seconds, 0);
}

TEST(Statistics, IntervalOfTheMedianCoversTheTruthAtItsRate) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> draw(0.0, 0.5);  // Skewed; true median 1.
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> seconds(40);
    for (double& x : seconds) x = draw(random);
    const SampleSummary s = summarize(seconds);
    covered += s.ci_low_seconds <= 1.0 && 1.0 <= s.ci_high_seconds;
  }
  // Nominal 95 %; rounding ranks outward makes it conservative. Three standard errors are 1.5
  // points.
  EXPECT_GE(covered, kTrials * 0.935);
  EXPECT_LE(covered, kTrials * 0.995);
}

TEST(Statistics, SamplingStopsExactlyWhenTheIntervalIsNarrowEnough) {
  const StoppingRule rule{.min_samples = 5, .max_samples = 100, .relative_half_width = 0.01};
  SampleSummary s{
      .num_samples = 5, .median_seconds = 1, .ci_low_seconds = 0.9801, .ci_high_seconds = 1.0};
  EXPECT_EQ(should_stop(rule, s, 0), StopReason::kConverged);
  s.ci_low_seconds = 0.9799;
  EXPECT_EQ(should_stop(rule, s, 0), StopReason::kContinue);
  s.ci_low_seconds = 0.99;
  s.num_samples = 4;
  EXPECT_EQ(should_stop(rule, s, 0), StopReason::kContinue);
}

TEST(Statistics, SamplingStopsAtItsLimits) {
  const StoppingRule rule{.min_samples = 5, .max_samples = 100, .max_total_seconds = 2};
  const SampleSummary wide{
      .num_samples = 99, .median_seconds = 1, .ci_low_seconds = 0.5, .ci_high_seconds = 1.5};
  EXPECT_EQ(should_stop(rule, wide, 1.9), StopReason::kContinue);
  EXPECT_EQ(should_stop(rule, wide, 2.0), StopReason::kMaxTime);
  SampleSummary full = wide;
  full.num_samples = 100;
  EXPECT_EQ(should_stop(rule, full, 0), StopReason::kMaxSamples);
}

TEST(Statistics, ASetIsNoisyOnlyWhenItSpreadsAndDidNotConverge) {
  const SampleSummary spread{
      .num_samples = 50, .median_seconds = 1, .p10_seconds = 0.9, .p90_seconds = 1.01};
  EXPECT_TRUE(is_noisy(spread, StopReason::kMaxSamples));
  EXPECT_FALSE(is_noisy(spread, StopReason::kConverged));
  const SampleSummary tight{
      .num_samples = 50, .median_seconds = 1, .p10_seconds = 0.95, .p90_seconds = 1.01};
  EXPECT_FALSE(is_noisy(tight, StopReason::kMaxSamples));
}

}  // namespace
}  // namespace fulcrum::replay
