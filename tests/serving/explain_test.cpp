// Attribution, the campaign's speculation story, waterfall, roofline target.
#include <gtest/gtest.h>

#include <cmath>

#include "model/attribution.h"
#include "model/explain_speculation.h"
#include "model/explain_step.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

TEST(Shapley, SplitsAProductEvenlyAndSumsToTheWhole) {
  // value = 2^|S| - 1 for two causes: 0, 1, 1, 3: each gets 1.5.
  const auto parts =
      shapley_values(2, [](std::uint32_t mask) { return std::exp2(std::popcount(mask)) - 1.0; });
  EXPECT_DOUBLE_EQ(parts[0], 1.5);
  EXPECT_DOUBLE_EQ(parts[1], 1.5);
}

TEST(Shapley, ACauseWithoutEffectGetsNothing) {
  const auto parts = shapley_values(3, [](std::uint32_t mask) {
    return (mask & 1u) * 2.0 + ((mask >> 1) & 1u) * (mask & 1u) * 4.0;
  });
  EXPECT_DOUBLE_EQ(parts[0], 4.0);
  EXPECT_DOUBLE_EQ(parts[1], 2.0);
  EXPECT_DOUBLE_EQ(parts[2], 0.0);
}

double product(const SpeculationPoint& point) {
  double log_sum = 0.0;
  for (const GainCause& cause : point.causes) log_sum += std::log(cause.factor);
  return std::exp(log_sum);
}

const GainCause* cause(const SpeculationPoint& point, const std::string& name) {
  for (const GainCause& c : point.causes) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

TEST(ExplainSpeculation, CausesMultiplyToTheGainAtEveryConcurrency) {
  const Deployment a = test::deployment("campaign-a");
  const Deployment b = test::deployment("campaign-b");
  for (double c : {1.0, 2.0, 8.0, 16.0, 64.0}) {
    const SpeculationPoint point = explain_speculation(a, b, c);
    EXPECT_NEAR(product(point), point.gain_ratio.p50, 1e-9 * point.gain_ratio.p50) << c;
    EXPECT_GT(cause(point, "accepted_tokens")->factor, 1.0);
    EXPECT_LT(cause(point, "draft")->factor, 1.0);
  }
}

TEST(ExplainSpeculation, TheCampaignGains47PercentAtC1AndNothingAtC16) {
  const Deployment a = test::deployment("campaign-a");
  const Deployment b = test::deployment("campaign-b");
  EXPECT_NEAR(explain_speculation(a, b, 1).gain_ratio.p50, 1.47, 0.15);
  EXPECT_LT(explain_speculation(a, b, 16).gain_ratio.p50, 1.05);
}

TEST(ExplainSpeculation, ArmsThatServeDifferentBatchesAreNotComparable) {
  const Deployment a = test::deployment("campaign-a");
  const Deployment b = test::deployment("campaign-b");
  EXPECT_TRUE(explain_speculation(a, b, 8).comparable);
  const SpeculationPoint point = explain_speculation(a, b, 16);
  EXPECT_FALSE(point.comparable);
  EXPECT_EQ(point.batch_without.requests, 16.0);
  EXPECT_EQ(point.batch_with.requests, 8.0);
  ASSERT_NE(cause(point, "effective_batch"), nullptr);
}

TEST(ExplainSpeculation, AttentionIsWhatStopsTheCampaignsMtp) {
  const SpeculationPoint point =
      explain_speculation(test::deployment("campaign-a"), test::deployment("campaign-b"), 8);
  const GainCause* attention = cause(point, "verify_attention");
  ASSERT_NE(attention, nullptr);
  for (const GainCause& c : point.causes) EXPECT_GE(c.factor, attention->factor) << c.name;
  EXPECT_GT(attention->gain_without_it, 1.1);  // without it MTP would pay at C=8
}

TEST(ExplainSpeculation, CrossoverLiesBetweenThePointsAroundIt) {
  const Deployment a = test::deployment("campaign-a");
  const Deployment b = test::deployment("campaign-b");
  std::vector<SpeculationPoint> points;
  for (double c : {1.0, 2.0, 4.0, 8.0, 16.0}) points.push_back(explain_speculation(a, b, c));
  const Crossover cross = crossover(points);
  ASSERT_TRUE(cross.p50);
  EXPECT_GT(*cross.p50, 1.0);
  EXPECT_LT(*cross.p50, 16.0);
  EXPECT_LE(cross.p05.value_or(1.0), *cross.p50);
  EXPECT_GE(cross.p95.value_or(16.0), *cross.p50);
}

SpeculationPoint point_with(double concurrency, double gain, double attention = 1.0) {
  SpeculationPoint point;
  point.concurrency = concurrency;
  point.gain_ratio = {gain * 0.9, gain, gain * 1.1};
  point.causes = {{"accepted_tokens", 1.8, 1.0}, {"verify_attention", attention, 1.0}};
  return point;
}

TEST(ExplainSpeculation, ACrossoverSaysWhetherDraftsNeverPayOrNeverStop) {
  using Status = Crossover::Status;
  const Crossover never = crossover({point_with(1, 0.9), point_with(2, 0.8)});
  EXPECT_FALSE(never.p50);
  EXPECT_EQ(never.p50_status, Status::kNeverPays);
  const Crossover always = crossover({point_with(1, 1.5), point_with(2, 1.3)});
  EXPECT_FALSE(always.p50);
  EXPECT_EQ(always.p50_status, Status::kNeverStops);
  const Crossover falls = crossover({point_with(1, 1.2), point_with(4, 0.8)});
  EXPECT_EQ(falls.p50_status, Status::kStopsPaying);
  EXPECT_NEAR(*falls.p50, 2.0, 1e-12);  // half way from 1.2 to 0.8, in log concurrency
}

TEST(ExplainSpeculation, ADipNamesTheCauseThatIsWeakestThere) {
  const auto dips = gain_dips({point_with(1, 1.5, 0.9), point_with(2, 1.1, 0.6),
                               point_with(4, 1.3, 0.9), point_with(8, 1.2, 0.85)});
  ASSERT_EQ(dips.size(), 1u);
  EXPECT_EQ(dips[0].concurrency, 2.0);
  EXPECT_EQ(dips[0].cause, "verify_attention");
  EXPECT_NEAR(dips[0].cause_ratio, 0.6 / 0.9, 1e-12);
}

TEST(ExplainSpeculation, NoDraftsGainNothing) {
  const Deployment a = test::deployment("campaign-a");
  const SpeculationPoint point = explain_speculation(a, without_speculation(a), 8);
  EXPECT_DOUBLE_EQ(point.gain_ratio.p50, 1.0);
  EXPECT_TRUE(point.causes.empty());
}

TEST(DraftLadder, KOfZeroIsNoSpeculation) {
  const Deployment b = test::deployment("campaign-b");
  const auto ladder = draft_ladder(b, 4, 5);
  ASSERT_EQ(ladder.size(), 6u);
  EXPECT_DOUBLE_EQ(ladder[0].output_tokens_per_second,
                   closed_loop_throughput(without_speculation(b), 4).output_tokens_per_second);
  for (std::size_t k = 1; k < ladder.size(); ++k) {
    EXPECT_GE(ladder[k].accept_length, ladder[k - 1].accept_length);
    EXPECT_LE(ladder[k].accept_length, 1.0 + static_cast<double>(k));
    EXPECT_DOUBLE_EQ(ladder[k].marginal_gain_ratio,
                     ladder[k].output_tokens_per_second / ladder[k - 1].output_tokens_per_second);
    EXPECT_LE(ladder[k].output_tokens_per_second, best_of(ladder).output_tokens_per_second);
  }
}

TEST(DraftLadder, FewerDraftsAreBestAtHigherConcurrency) {
  const Deployment b = test::deployment(
      "b12x-tp4",
      {{"/speculation", {{"method", "mtp"}, {"draft_tokens", 2}, {"workload", "mt-bench"}}}});
  EXPECT_GE(best_of(draft_ladder(b, 1, 3)).draft_tokens,
            best_of(draft_ladder(b, 64, 3)).draft_tokens);
}

TEST(Waterfall, BarsSumToTheStep) {
  for (const char* name : {"campaign-stock", "campaign-b", "b12x-tp4"}) {
    for (const PredictionPoint& point : predict(test::deployment(name)).points) {
      const auto bars = step_waterfall(point);
      EXPECT_EQ(bars.front().name, "floor");
      EXPECT_EQ(bars.back().name, "step");
      EXPECT_NEAR(bars.back().seconds, point.step_seconds.p50, 1e-9 * point.step_seconds.p50);
      for (const WaterfallBar& bar : bars) EXPECT_GE(bar.seconds, -1e-12) << name << bar.name;
    }
  }
}

TEST(Target, NothingIsPredictedAboveTheRoofline) {
  for (const char* name : {"campaign-a", "campaign-b", "b12x-tp4"}) {
    const TargetAnswer answer = explain_target(test::deployment(name), 1000.0);
    ASSERT_FALSE(answer.bounds.empty());
    for (std::size_t i = 0; i < answer.bounds.size(); ++i) {
      EXPECT_LT(answer.predicted[i], answer.bounds[i].output_tokens_per_second);
    }
  }
}

TEST(Target, AThousandTokensAreBeyondTheJuneKernelsAndWithinTheHardware) {
  const TargetAnswer june = explain_target(test::deployment("campaign-a"), 1000.0);
  EXPECT_FALSE(june.predicted_from);
  ASSERT_TRUE(june.physical_from);
  EXPECT_LE(*june.physical_from, 16.0);
  const TargetAnswer august = explain_target(test::deployment("b12x-tp4"), 1000.0);
  ASSERT_TRUE(august.predicted_from);
  EXPECT_LE(*august.predicted_from, 64.0);
}

}  // namespace
}  // namespace fulcrum
