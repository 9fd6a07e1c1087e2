// Acceptance: every published pair of positions and accept length, and what a constant misses.
#include "model/acceptance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/io/load_acceptance.h"
#include "model/speculation.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

constexpr double kRounding = 0.005 + 1e-9;  // published to two decimals

std::vector<AcceptanceProfile> profiles() {
  std::vector<AcceptanceProfile> all;
  for (const std::string& name : io::acceptance_names()) {
    all.push_back(io::load_acceptance(test::data_path("acceptance/" + name + ".json")));
  }
  return all;
}

TEST(Acceptance, PositionsReproduceEveryPublishedAcceptLengthWithinRounding) {
  const std::vector<AcceptanceProfile> all = profiles();
  EXPECT_GE(all.size(), 17u);
  for (const AcceptanceProfile& p : all) {
    const double length = accept_length(conditional_acceptance(p.reached));
    EXPECT_GE(length, p.published_low - kRounding) << p.name;
    EXPECT_LE(length, p.published_high + kRounding) << p.name;
  }
}

TEST(Acceptance, OneConstantMissesFurtherPositionsByFivePercentOrMore) {
  // The first position's acceptance, used for all, on workloads of real prompts with K >= 2 MTP.
  int checked = 0;
  for (const AcceptanceProfile& p : profiles()) {
    if (p.method != DraftMethod::kMtp || p.reached.size() < 2 || p.reached[0] < 0.5) continue;
    const double truth = accept_length(conditional_acceptance(p.reached));
    const double constant = accept_length(std::vector<double>(p.reached.size(), p.reached[0]));
    EXPECT_GE(constant / truth - 1.0, 0.049) << p.name;
    ++checked;
  }
  EXPECT_GE(checked, 8);
}

TEST(Acceptance, AConstantFittedToALadderMissesOneOfItsRungsBySixPercent) {
  // V4-Pro thinking on, K = 1..5. The a that is best in the worst rung still misses by more than 6
  // %.
  const AcceptanceProfile p =
      io::load_acceptance(test::data_path("acceptance/pro-coding-thinking.json"));
  const std::vector<double> positions = conditional_acceptance(p.reached);
  double best = 1.0;
  for (double a = 0.3; a < 1.0; a += 0.001) {
    double worst = 0.0;
    for (std::size_t k = 1; k <= positions.size(); ++k) {
      const double truth = accept_length(std::span(positions).first(k));
      worst = std::max(worst, std::abs(accept_length(std::vector<double>(k, a)) / truth - 1.0));
    }
    best = std::min(best, worst);
  }
  EXPECT_GE(best, 0.06);
}

TEST(Acceptance, AMeanBecomesPositionsWithThatMean) {
  const std::vector<double> shape{0.844, 0.611};
  for (int k : {1, 2, 3, 5}) {
    for (double mean : {1.05, 1.5, 1.9, 2.4, 3.5, 5.0}) {
      const auto positions = positions_from_accept_length(mean, k, shape);
      ASSERT_EQ(positions.has_value(), mean < 1.0 + k);
      if (!positions) continue;
      EXPECT_NEAR(accept_length(*positions), mean, 1e-9);
      for (std::size_t i = 1; i < positions->size(); ++i) {
        EXPECT_LE((*positions)[i], (*positions)[i - 1] + 1e-12);
      }
    }
  }
  EXPECT_FALSE(positions_from_accept_length(1.0, 2, shape));
}

TEST(Acceptance, TheMeansOwnShapeComesBack) {
  // MT-Bench, K = 2: mean 2.36 with its own shape is t = 1.
  const std::vector<double> shape{0.844, 0.516 / 0.844};
  const auto positions = positions_from_accept_length(2.36, 2, shape);
  ASSERT_TRUE(positions);
  EXPECT_NEAR((*positions)[0], 0.844, 1e-9);
  EXPECT_NEAR((*positions)[1], 0.516 / 0.844, 1e-9);
}

TEST(Acceptance, CountsOfALogGiveConditionalShares) {
  // 100 steps: 20 accept none, 30 exactly one, 50 both: 80/100, 50/80.
  const auto positions = acceptance_from_counts(std::vector<double>{20, 30, 50});
  ASSERT_TRUE(positions);
  EXPECT_DOUBLE_EQ((*positions)[0], 0.8);
  EXPECT_DOUBLE_EQ((*positions)[1], 0.625);
  EXPECT_FALSE(acceptance_from_counts(std::vector<double>{0, 0}));
}

TEST(Acceptance, PositionsNotMeasuredDeclineAndNeverRise) {
  const std::vector<double> longer = acceptance_for(std::vector<double>{0.8, 0.6}, 4);
  EXPECT_DOUBLE_EQ(longer[2], 0.6 * 0.75);
  EXPECT_DOUBLE_EQ(longer[3], 0.6 * 0.75 * 0.75);
  EXPECT_EQ(acceptance_for(std::vector<double>{0.8, 0.6}, 1).size(), 1u);
}

TEST(Scenario, TakesAcceptanceFromANamedWorkloadAMeanOrALog) {
  const auto with = [](const nlohmann::json& speculation) {
    return test::deployment("campaign-b", {{"/speculation", speculation}}).speculation;
  };
  const auto named = with({{"method", "mtp"}, {"draft_tokens", 2}, {"workload", "gsm8k"}});
  EXPECT_NEAR(accept_length(named.acceptance), 2.613, 1e-9);
  const auto mean = with({{"method", "mtp"},
                          {"draft_tokens", 2},
                          {"accept_length", 2.2},
                          {"acceptance_standard_error", 0.03},
                          {"acceptance_source", "my server"}});
  EXPECT_NEAR(accept_length(mean.acceptance), 2.2, 1e-9);
  const auto log = with({{"method", "mtp"},
                         {"draft_tokens", 2},
                         {"accepted_counts", {20, 30, 50}},
                         {"acceptance_standard_error", 0.03},
                         {"acceptance_source", "my server"}});
  EXPECT_NEAR(accept_length(log.acceptance), 2.3, 1e-9);
  EXPECT_THROW(with({{"method", "mtp"}, {"draft_tokens", 2}}), std::exception);
}

}  // namespace
}  // namespace fulcrum
