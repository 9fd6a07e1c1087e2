#include "model/validate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

Score score(const std::string& panel, double concurrency, double predicted, double measured) {
  Score s;
  s.panel = panel;
  s.concurrency = concurrency;
  s.predicted = log_normal_interval(predicted, 0.1);
  s.measured = measured;
  s.ape = std::abs(predicted / measured - 1.0);
  s.log_error = std::log(predicted / measured);
  s.covered = measured >= s.predicted.p05 && measured <= s.predicted.p95;
  s.kernel_set = concurrency < 4.0 ? "small" : "large";
  return s;
}

// Anchor C = 1: 10 for 8. At C = 4 the prediction grows 3-fold and the measurement 2.5-fold: 20 %.
// At C = 8 both grow 5-fold: 0. The mean is 10 %; that all are 25 % or 50 % high does not enter.
TEST(ShapeError, ComparesGrowthFromTheSmallestConcurrencyOnly) {
  const std::vector<Score> scores{score("p", 8, 50, 40), score("p", 1, 10, 8),
                                  score("p", 4, 30, 20)};
  EXPECT_NEAR(*shape_error(scores), 0.1, 1e-12);
}

TEST(ShapeError, IsUnknownWithoutTwoPointsOfAPanel) {
  const std::vector<Score> scores{score("p", 1, 10, 8), score("q", 4, 30, 20), score("", 8, 1, 1)};
  EXPECT_FALSE(shape_error(scores).has_value());
}

// APE 0.25, 0.50, 0.25: mean 1/3, median 0.25; geometric bias (1.25 x 1.5 x 1.25)^(1/3) - 1.
TEST(Summary, IsThatOfItsScores) {
  const std::vector<Score> scores{score("p", 8, 50, 40), score("p", 4, 30, 20),
                                  score("p", 1, 10, 8)};
  const ScoreSummary s = *summarise(scores);
  EXPECT_EQ(s.n, 3u);
  EXPECT_NEAR(s.mape, 1.0 / 3.0, 1e-12);
  EXPECT_NEAR(s.median_ape, 0.25, 1e-12);
  EXPECT_NEAR(s.bias, std::cbrt(1.25 * 1.5 * 1.25) - 1.0, 1e-12);
  EXPECT_EQ(s.coverage, 0.0);
  EXPECT_FALSE(summarise({}).has_value());
}

TEST(Summary, SplitsSumToTheWhole) {
  const std::vector<Score> scores{score("p", 8, 50, 40), score("p", 4, 30, 20),
                                  score("p", 1, 10, 8)};
  const auto splits = split_by("kernel_set", scores);
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[0].value, "large");
  EXPECT_EQ(splits[0].summary.n + splits[1].summary.n, scores.size());
}

Case case_of(const std::string& scenario, double concurrency, double tokens_per_second) {
  Case one;
  one.id = scenario;
  one.deployment = test::deployment(scenario);
  one.concurrency = concurrency;
  one.measured.result.output_tokens_per_second = tokens_per_second;
  return one;
}

TEST(ScoreCase, ScoresEveryMeasuredQuantityAndNoOther) {
  Case one = case_of("campaign-a", 8.0, 20.0);
  one.measured.step_seconds = 0.3;
  const std::vector<Score> scores = score_case(one);
  ASSERT_EQ(scores.size(), 2u);
  for (const Score& s : scores) {
    EXPECT_LT(s.predicted.p05, s.predicted.p50);
    EXPECT_LT(s.predicted.p50, s.predicted.p95);
    EXPECT_NEAR(s.ape, std::abs(s.predicted.p50 / s.measured - 1.0), 1e-12);
  }
}

// A range whose ends differ by a factor r adds the variance of a uniform of width log r.
TEST(ScoreCase, WhatTheRecordLeavesOpenWidensTheInterval) {
  Case one = case_of("campaign-a", 8.0, 20.0);
  const double before = score_case(one)[0].predicted.p95 / score_case(one)[0].predicted.p50;
  AssumedRange range;
  range.low = test::deployment("campaign-a", {{"/workload/output_tokens", 128}});
  range.high = test::deployment("campaign-a", {{"/workload/output_tokens", 4096}});
  one.assumptions.push_back(range);
  const double with_range = score_case(one)[0].predicted.p95 / score_case(one)[0].predicted.p50;
  EXPECT_GT(with_range, before);
  one.assumptions = {AssumedRange{}};
  one.assumptions[0].log_sigma = 0.3;
  const double spread =
      std::log(score_case(one)[0].predicted.p95 / score_case(one)[0].predicted.p50) / kNormalP95;
  EXPECT_NEAR(spread, std::hypot(std::log(before) / kNormalP95, 0.3), 1e-9);
}

TEST(ScoreCase, PricesWhatTheLedgerRefusesAndSaysSo) {
  Case one = case_of("campaign-a", 8.0, 20.0);
  one.deployment.engine.memory_fraction = 0.05;
  const std::vector<Score> scores = score_case(one);
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_TRUE(scores[0].does_not_fit);
  EXPECT_GT(scores[0].predicted.p50, 0.0);
}

TEST(Gains, AnArmAgainstItselfGainsNothing) {
  Case a = case_of("campaign-a", 8.0, 20.0);
  a.pair = "same";
  Case b = a;
  b.id = "again";
  const GainScores gains = score_gains(std::vector<Case>{a, b});
  ASSERT_EQ(gains.gains.size(), 1u);
  EXPECT_DOUBLE_EQ(gains.gains[0].predicted_ratio.p50, 1.0);
  EXPECT_DOUBLE_EQ(gains.gains[0].measured_ratio, 1.0);
  EXPECT_TRUE(gains.gains[0].sign_right);
  EXPECT_TRUE(gains.gains[0].covered);
}

// campaign.md: MTP gives +47 % at one request.
TEST(Gains, MtpOfTheCampaignAtOneRequestIsWithinTenPoints) {
  Case a = case_of("campaign-a", 1.0, 10.0);
  Case b = case_of("campaign-b", 1.0, 14.7);
  a.pair = b.pair = "mtp";
  const GainScores gains = score_gains(std::vector<Case>{a, b});
  ASSERT_EQ(gains.gains.size(), 1u);
  EXPECT_NEAR(gains.gains[0].measured_ratio, 1.47, 1e-12);
  EXPECT_LT(std::abs(gains.gains[0].error_points), 10.0);
  EXPECT_TRUE(gains.gains[0].sign_right);
}

TEST(Gains, APairNeedsTwoArms) {
  Case a = case_of("campaign-a", 1.0, 10.0);
  a.pair = "lonely";
  const GainScores gains = score_gains(std::vector<Case>{a});
  EXPECT_TRUE(gains.gains.empty());
  ASSERT_EQ(gains.excluded.size(), 1u);
}

}  // namespace
}  // namespace fulcrum
