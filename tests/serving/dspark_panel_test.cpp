// A public panel of block-drafted steps against `predict` of the shipped scenario.
//
// ormandj/sglang-deepseek-v4-flash-sm120, bench/results/sglang-v0.8.1-rc.1-publication-summary.json
// (2026-08-21): 2x RTX PRO 6000 Max-Q, TP2, DSpark block 5 (6 tokens verified a request), mean
// context 18 944, engine forwards per second by server counters. Two numbers of the scenario's
// expert kernel come from C=1 and C=32; the points between are foretold.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "model/explain_speculation.h"
#include "model/predict.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

constexpr std::size_t kPoints = 6;
constexpr std::array<double, kPoints> kConcurrency{1, 2, 4, 8, 16, 32};
constexpr std::array<double, kPoints> kForwardsPerSecond{64.51896904, 48.28456835, 34.42201273,
                                                         23.25052812, 17.90899533, 13.31321572};
constexpr double kShapeTolerance = 0.05;  // set for the project

double seconds_of(const PredictionPoint& point, OpFamily family) {
  double seconds = 0.0;
  for (const BreakdownLine& line : point.breakdown) {
    if (line.family == family) seconds += line.seconds;
  }
  return seconds;
}

class DsparkPanel : public testing::Test {
 protected:
  const Prediction prediction_ = predict(test::deployment("maxq-dspark-tp2"));

  double ratio(std::size_t i) const {
    return prediction_.points[i].step_seconds.p50 * kForwardsPerSecond[i];
  }
};

TEST_F(DsparkPanel, ThePointsBetweenTheEndsAreForetoldWithinFivePercent) {
  ASSERT_EQ(prediction_.points.size(), kPoints);
  double worst = 0.0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    EXPECT_EQ(prediction_.points[i].concurrency, kConcurrency[i]);
    worst = std::max(worst, std::abs(ratio(i) - 1.0));
    EXPECT_NEAR(ratio(i), 1.0, kShapeTolerance) << "C=" << kConcurrency[i];
  }
  std::printf("worst step error %.1f %%\n", 100 * worst);
}

TEST_F(DsparkPanel, ShapeOverConcurrencyHoldsWithinFivePercent) {
  double worst = 0.0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double error = ratio(i) / ratio(0) - 1.0;
    worst = std::max(worst, std::abs(error));
    EXPECT_LE(std::abs(error), kShapeTolerance) << "C=" << kConcurrency[i];
  }
  std::printf("worst shape error %.1f %%\n", 100 * worst);
}

TEST_F(DsparkPanel, ThroughputIsThatOfThePanelWithinItsInterval) {
  // Decoding alone, without the prompts' prefill: forwards x batch x accept length.
  for (std::size_t i = 1; i < kPoints; ++i) {  // the scenario's acceptance is that of C=2..32
    const PredictionPoint& point = prediction_.points[i];
    const double tokens = kConcurrency[i] * point.accept_length / point.step_seconds.p50;
    constexpr std::array<double, kPoints> kMeasured{350.187, 465.125,  674.235,
                                                    923.155, 1395.325, 2089.542};
    EXPECT_NEAR(tokens / kMeasured[i], 1.0, 0.05) << "C=" << kConcurrency[i];
  }
}

TEST_F(DsparkPanel, MostOfTheSaturationIsDistinctExperts) {
  const PredictionPoint& one = prediction_.points.front();
  const PredictionPoint& all = prediction_.points.back();
  const double grown = all.step_seconds.p50 - one.step_seconds.p50;
  const auto share = [&](OpFamily family) {
    return (seconds_of(all, family) - seconds_of(one, family)) / grown;
  };
  double sum = 0.0;
  for (int f = 0; f <= static_cast<int>(OpFamily::kGap); ++f)
    sum += share(static_cast<OpFamily>(f));
  EXPECT_NEAR(sum, 1.0, 1e-9);
  std::printf("growth from C=1 to 32: experts %.0f %%, attention %.0f %%, draft %.0f %%\n",
              100 * share(OpFamily::kMoe), 100 * share(OpFamily::kAttention),
              100 * share(OpFamily::kDraft));
  EXPECT_GT(share(OpFamily::kMoe), 0.5);
  EXPECT_GT(share(OpFamily::kAttention), 0.05);
}

TEST_F(DsparkPanel, ExplainSplitsTheGainAndDistinctExpertsCostMost) {
  const Deployment with = test::deployment("maxq-dspark-tp2");
  const SpeculationPoint point = explain_speculation(without_speculation(with), with, 8);
  double log_sum = 0.0;
  const GainCause* worst = nullptr;
  for (const GainCause& cause : point.causes) {
    log_sum += std::log(cause.factor);
    if (worst == nullptr || cause.factor < worst->factor) worst = &cause;
  }
  EXPECT_NEAR(std::exp(log_sum), point.gain_ratio.p50, 1e-9 * point.gain_ratio.p50);
  ASSERT_NE(worst, nullptr);
  EXPECT_EQ(worst->name, "verify_moe");
}

TEST_F(DsparkPanel, AStraightLineInConcurrencyMissesByFifteenPercentOrMore) {
  // Least squares of relative residuals of y = a + b C.
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double u = kForwardsPerSecond[i];
    const double v = kConcurrency[i] * kForwardsPerSecond[i];
    uu += u * u, uv += u * v, vv += v * v, u1 += u, v1 += v;
  }
  const double det = uu * vv - uv * uv;
  const double a = (u1 * vv - v1 * uv) / det;
  const double b = (v1 * uu - u1 * uv) / det;
  double worst = 0.0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    worst = std::max(worst, std::abs((a + b * kConcurrency[i]) * kForwardsPerSecond[i] - 1.0));
  }
  EXPECT_GE(worst, 0.15);
}

}  // namespace
}  // namespace fulcrum
