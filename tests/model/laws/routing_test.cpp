// Expected distinct experts and routed work against exact counts and seeded Monte-Carlo draws.
#include "model/laws/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace fulcrum {
namespace {

MoeLaunch flash(double tokens, Routing routing = Routing::kUniform, double ep = 1.0) {
  MoeLaunch launch;
  launch.tokens = tokens;
  launch.top_k = 6.0;
  launch.num_experts = 256.0;
  launch.local_experts = 256.0 / ep;
  launch.routing = routing;
  launch.power_law_alpha = 1.01;
  return launch;
}

/// Top-k without replacement by popularity (Gumbel trick: Plackett-Luce).
std::vector<std::size_t> draw_top_k(std::span<const double> popularity, std::size_t k,
                                    std::mt19937_64& engine) {
  std::uniform_real_distribution<double> uniform(1e-300, 1.0);
  std::vector<std::pair<double, std::size_t>> keys;
  for (std::size_t i = 0; i < popularity.size(); ++i) {
    keys.emplace_back(std::log(popularity[i]) - std::log(-std::log(uniform(engine))), i);
  }
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(k), keys.end(),
                    std::greater<>());
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < k; ++i) chosen.push_back(keys[i].second);
  return chosen;
}

double mean_distinct(std::span<const double> popularity, std::size_t k, int tokens, int trials,
                     std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  double sum = 0.0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<bool> seen(popularity.size(), false);
    for (int t = 0; t < tokens; ++t) {
      for (const std::size_t e : draw_top_k(popularity, k, engine)) seen[e] = true;
    }
    sum += static_cast<double>(std::count(seen.begin(), seen.end(), true));
  }
  return sum / trials;
}

TEST(Routing, OneTokenTouchesExactlyItsTopK) {
  for (const Routing routing : {Routing::kUniform, Routing::kRoundRobin, Routing::kPowerLaw}) {
    const RoutedWork work = routed_work(flash(1.0, routing));
    EXPECT_NEAR(work.active_experts, 6.0, 1e-9);
    EXPECT_NEAR(work.rows, 6.0, 1e-9);
    EXPECT_NEAR(work.blocks(0), 6.0, 1e-9);
  }
}

TEST(Routing, UniformDistinctExpertsAgreeWithDraws) {
  const std::vector<double> equal(256, 1.0);
  for (const int tokens : {2, 8, 32, 128}) {
    const double drawn = mean_distinct(equal, 6, tokens, 400, 11);
    // 400 draws of a count with standard deviation below 6 of the mean: 0.9 at three sigma.
    EXPECT_NEAR(expected_distinct_experts(flash(tokens)), drawn, 0.9) << tokens;
  }
}

TEST(Routing, SkewedDistinctExpertsAgreeWithDrawsWithinTwoPercent) {
  std::vector<double> popularity(64);
  std::vector<double> inclusion(64);
  for (const double exponent : {0.5, 0.8}) {
    zipf_popularity(exponent, popularity);
    inclusion_probabilities(popularity, 4.0, inclusion);
    EXPECT_NEAR(std::accumulate(inclusion.begin(), inclusion.end(), 0.0), 4.0, 1e-6);
    for (const int tokens : {2, 8, 32}) {
      const double drawn = mean_distinct(popularity, 4, tokens, 1500, 17);
      // Poisson sampling stands for sampling without replacement: 1 %, and 1 % for the draws.
      EXPECT_NEAR(expected_distinct_experts(inclusion, tokens) / drawn, 1.0, 0.02)
          << exponent << ' ' << tokens;
    }
  }
}

TEST(Routing, EqualPopularityIsUniformRouting) {
  std::vector<double> popularity(256, 3.0);
  std::vector<double> inclusion(256);
  inclusion_probabilities(popularity, 6.0, inclusion);
  for (const double pi : inclusion) EXPECT_NEAR(pi, 6.0 / 256.0, 1e-9);
  EXPECT_NEAR(expected_distinct_experts(inclusion, 16.0), expected_distinct_experts(flash(16.0)),
              1e-6);
}

TEST(Routing, CorrelatedNeighboursAgreeWithTheChain) {
  // 20 000 requests of four tokens: expert use is a two-state chain with the given correlation.
  MoeLaunch launch = flash(4.0);
  launch.tokens_per_request = 4.0;
  launch.neighbour_correlation = 0.2;
  const double pi = 6.0 / 256.0;
  std::mt19937_64 engine(5);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  double used = 0.0;
  const int trials = 200000;
  for (int i = 0; i < trials; ++i) {
    bool now = uniform(engine) < pi;
    bool ever = now;
    for (int t = 1; t < 4; ++t) {
      const double p = now ? pi + 0.2 * (1.0 - pi) : pi * (1.0 - 0.2);
      now = uniform(engine) < p;
      ever = ever || now;
    }
    used += ever ? 1.0 : 0.0;
  }
  // sd of the estimate: 256 sqrt(0.08 x 0.92 / 200000) = 0.16.
  EXPECT_NEAR(expected_distinct_experts(launch), 256.0 * used / trials, 0.5);
}

TEST(Routing, FullCorrelationMakesDraftsFree) {
  MoeLaunch verify = flash(16.0);
  verify.tokens_per_request = 2.0;
  verify.neighbour_correlation = 1.0;
  EXPECT_NEAR(expected_distinct_experts(verify), expected_distinct_experts(flash(8.0)), 1e-9);
}

TEST(Routing, RoundRobinTouchesTheExpertsOfTheTablesGenerator) {
  // Stride ceil(256/8) = 32: up to 32 tokens every pair has an expert of its own.
  MoeLaunch launch = flash(16.0, Routing::kRoundRobin);
  launch.top_k = 8.0;
  EXPECT_EQ(routed_work(launch).active_experts, 128.0);
  launch.tokens = 64.0;
  const RoutedWork work = routed_work(launch);
  EXPECT_EQ(work.active_experts, 256.0);
  EXPECT_EQ(work.rows, 512.0);
  EXPECT_EQ(work.blocks(0), 256.0);  // two rows an expert: one block each
}

TEST(Routing, RoundRobinLeavesARankItsShare) {
  MoeLaunch launch = flash(64.0, Routing::kRoundRobin, 8.0);
  launch.top_k = 8.0;
  const RoutedWork work = routed_work(launch);
  EXPECT_EQ(work.active_experts, 32.0);
  EXPECT_EQ(work.rows, 64.0);
}

TEST(Routing, UniformBlocksAgreeWithDraws) {
  std::mt19937_64 engine(23);
  const double p = 6.0 / 256.0;
  for (const int tokens : {16, 256, 1024}) {
    std::binomial_distribution<int> rows(tokens, p);
    std::array<double, kBlockRows.size()> blocks{};
    const int trials = 40000;
    for (int i = 0; i < trials; ++i) {
      const double n = rows(engine);
      for (std::size_t b = 0; b < kBlockRows.size(); ++b) {
        blocks[b] += std::ceil(n / kBlockRows[b]);
      }
    }
    const RoutedWork work = routed_work(flash(tokens));
    for (std::size_t b = 0; b < kBlockRows.size(); ++b) {
      EXPECT_NEAR(work.blocks(b) / (256.0 * blocks[b] / trials), 1.0, 0.02) << tokens << ' ' << b;
    }
  }
}

TEST(Routing, MoreTokensNeverTouchFewerExperts) {
  for (const Routing routing : {Routing::kUniform, Routing::kRoundRobin}) {
    double before = 0.0;
    for (double tokens = 1.0; tokens <= 512.0; tokens *= 2.0) {
      const double active = routed_work(flash(tokens, routing)).active_experts;
      EXPECT_GE(active, before - 1e-9);
      EXPECT_LE(active, 256.0);
      before = active;
    }
  }
}

TEST(Routing, PowerLawKeepsEveryPairAndTouchesFewerExperts) {
  const RoutedWork skewed = routed_work(flash(64.0, Routing::kPowerLaw));
  EXPECT_NEAR(skewed.rows, 384.0, 1e-9);
  EXPECT_LT(skewed.active_experts, expected_distinct_experts(flash(64.0)));
}

TEST(Routing, PowerLawGivesTheBusiestRankMoreThanItsShare) {
  const RoutedWork rank = routed_work(flash(64.0, Routing::kPowerLaw, 8.0));
  EXPECT_GT(rank.rows, 384.0 / 8.0);
  EXPECT_LE(rank.active_experts, 32.0);
}

// One token, two ranks of 128: X of its 6 experts lie on the first rank, hypergeometric; the fuller
// rank has max(X, 6 - X) = 3 + |X - 3|. E|X - 3| = 0.9375 within 1e-2; the normal estimate is
// 0.965.
TEST(Routing, TheFullerOfTwoRanksExceedsTheMeanByTheHypergeometricExcess) {
  MoeLaunch launch = flash(1.0, Routing::kUniform, 2.0);
  launch.waiting_ranks = 2.0;
  EXPECT_NEAR(expected_excess_experts(launch), 0.94, 0.03);
  EXPECT_NEAR(routed_work(launch).active_experts, 3.0 + 0.94, 0.03);
}

TEST(Routing, WaitingRanksNeverNeedMoreExpertsThanTheyHold) {
  for (const double ranks : {2.0, 3.0, 4.0, 8.0, 16.0}) {
    for (double tokens = 1.0; tokens <= 4096.0; tokens *= 4.0) {
      MoeLaunch launch = flash(tokens, Routing::kUniform, ranks);
      launch.waiting_ranks = ranks;
      const RoutedWork work = routed_work(launch);
      EXPECT_LE(work.active_experts, launch.local_experts + 1e-9);
      EXPECT_GE(work.active_experts, expected_distinct_experts(launch));
    }
  }
}

}  // namespace
}  // namespace fulcrum
