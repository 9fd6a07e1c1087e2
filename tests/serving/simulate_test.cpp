// The discrete-event simulation: conservation laws, and the analytic closed loop against it.
#include "model/simulate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "model/predict.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

Traffic closed_loop_traffic(const Deployment& deployment, double concurrency, double rounds,
                            double length_ratio) {
  Traffic traffic;
  traffic.concurrency = concurrency;
  traffic.num_requests = static_cast<std::int64_t>(concurrency * rounds);
  traffic.input_tokens = deployment.workload.input_tokens;
  traffic.output_tokens = deployment.workload.output_tokens;
  traffic.lengths = LengthSpread::uniform(length_ratio);
  return traffic;
}

void expect_conserved(const SimulationResult& r) {
  EXPECT_EQ(r.offered, r.completed + r.rejected);
  EXPECT_EQ(r.end_to_end.count(), static_cast<double>(r.completed));
  // Little: mean number in system = rate x mean time, exact over a run that starts and ends empty.
  EXPECT_NEAR(r.mean_in_system, r.requests_per_second * r.mean_end_to_end_seconds,
              1e-6 * std::max(1.0, r.mean_in_system));
}

TEST(Simulate, OneRequestTakesItsPrefillAndItsSteps) {
  Deployment deployment = test::deployment("b12x-tp4");
  Traffic traffic = closed_loop_traffic(deployment, 1, 1, 1.0);
  traffic.output_tokens = 2;
  const SimulationResult r = simulate(deployment, traffic, {});
  EXPECT_EQ(r.completed, 1);
  EXPECT_EQ(r.prefill_steps, 1);
  EXPECT_EQ(r.decode_steps, 1);
  EXPECT_NEAR(r.ttft.mean() + r.tpot.mean(), r.makespan_seconds, 1e-12);
}

TEST(Simulate, SameSeedSameRunOtherSeedOtherRun) {
  const Deployment deployment = test::deployment("campaign-b");
  const Traffic traffic = closed_loop_traffic(deployment, 4, 8, 0.5);
  const double first = simulate(deployment, traffic, {.seed = 7}).makespan_seconds;
  EXPECT_EQ(first, simulate(deployment, traffic, {.seed = 7}).makespan_seconds);
  EXPECT_NE(first, simulate(deployment, traffic, {.seed = 8}).makespan_seconds);
}

TEST(Simulate, LittlesLawAndConservationHoldInEveryRun) {
  for (const char* name : {"campaign-b", "b12x-tp4"}) {
    for (const SchedulerPolicy policy : {SchedulerPolicy::kPrefillFirst, SchedulerPolicy::kMixed}) {
      Deployment deployment = test::deployment(name);
      for (double fraction : {0.85, 0.53}) {
        deployment.engine.memory_fraction = fraction;
        Traffic traffic = closed_loop_traffic(deployment, 24, 10, 0.3);
        expect_conserved(simulate(deployment, traffic, {.policy = policy, .seed = 3}));
        traffic.kind = Traffic::Kind::kPoisson;
        traffic.requests_per_second = 0.5;
        expect_conserved(simulate(deployment, traffic, {.policy = policy, .seed = 4}));
      }
    }
  }
}

TEST(Simulate, ATightPoolRetractsAndStillServesEverybody) {
  Deployment deployment = test::deployment("b12x-tp4");
  deployment.workload.input_tokens = 20000;
  deployment.workload.output_tokens = 4000;
  deployment.engine.memory_fraction = 0.427;
  const Traffic traffic = closed_loop_traffic(deployment, 32, 3, 0.5);
  const SimulationResult r =
      simulate(deployment, traffic, {.seed = 5, .reserved_output_fraction = 0.0});
  expect_conserved(r);
  EXPECT_EQ(r.rejected, 0);
  EXPECT_GT(r.retractions, 0);
  EXPECT_LE(r.pool_peak_fraction, 1.0);
  EXPECT_LT(r.mean_batch, 32.0);
}

TEST(DurationHistogram, QuantilesAreExactUntilTooManyDiffer) {
  DurationHistogram few;
  for (int i = 100; i >= 1; --i) few.add(i * 1e-3);
  EXPECT_TRUE(few.exact());
  EXPECT_DOUBLE_EQ(few.quantile(0.5), 0.050);
  EXPECT_DOUBLE_EQ(few.quantile(0.99), 0.099);
  EXPECT_DOUBLE_EQ(few.quantile(1.0), 0.100);
  DurationHistogram many;
  constexpr int kMany = 200000;
  for (int i = 1; i <= kMany; ++i) many.add(i * 1e-5);
  EXPECT_FALSE(many.exact());
  for (double fraction : {0.01, 0.5, 0.9, 0.99}) {
    EXPECT_NEAR(many.quantile(fraction), fraction * kMany * 1e-5, 0.005 * fraction * 2.0);
  }
  EXPECT_DOUBLE_EQ(many.quantile(1.0), kMany * 1e-5);
  EXPECT_EQ(DurationHistogram{}.quantile(0.5), 0.0);
}

TEST(Simulate, ZeroAcceptanceNeverBeatsNoSpeculation) {
  Deployment drafted = test::deployment("campaign-b", {{"/engine/max_running_requests", 256}});
  drafted.speculation.acceptance = {0.0};
  const Deployment plain = test::deployment("campaign-a");
  for (double c : {1.0, 8.0}) {
    EXPECT_LT(
        simulate(drafted, closed_loop_traffic(drafted, c, 4, 1.0), {}).output_tokens_per_second,
        simulate(plain, closed_loop_traffic(plain, c, 4, 1.0), {}).output_tokens_per_second);
  }
}

TEST(Simulate, TraceArrivalsAreServedInOrder) {
  const Deployment deployment = test::deployment("b12x-tp4");
  const std::vector<TraceRequest> trace{{0.0, 500, 10}, {0.1, 700, 20}, {100.0, 300, 5}};
  Traffic traffic;
  traffic.kind = Traffic::Kind::kTrace;
  traffic.trace = trace;
  const SimulationResult r = simulate(deployment, traffic, {});
  EXPECT_EQ(r.completed, 3);
  EXPECT_GT(r.makespan_seconds, 100.0);
  expect_conserved(r);
}

struct GridPoint {
  const char* scenario;
  double concurrency;
  double input;
  double output;
  int drafts;
  double length_ratio;
};

/// 2 kernel sets x 5 concurrencies x 5 length pairs x K of 0 and 1 x fixed and spread lengths.
std::vector<GridPoint> grid() {
  std::vector<GridPoint> points;
  for (const char* scenario : {"campaign-b", "b12x-tp4"}) {
    for (double c : {1.0, 4.0, 16.0, 32.0, 64.0}) {
      for (const auto& [input, output] : {std::pair{256.0, 256.0},
                                          {1024.0, 1024.0},
                                          {1024.0, 256.0},
                                          {8192.0, 1024.0},
                                          {512.0, 2048.0}}) {
        for (int drafts : {0, 1}) {
          for (double ratio : {1.0, 0.5})
            points.push_back({scenario, c, input, output, drafts, ratio});
        }
      }
    }
  }
  return points;
}

Deployment deployment_at(const GridPoint& p) {
  Deployment deployment = test::deployment(p.scenario);
  deployment.workload.input_tokens = p.input;
  deployment.workload.output_tokens = p.output;
  deployment.engine.max_running_requests = 256;
  deployment.speculation = Speculation{};
  if (p.drafts == 1) {
    deployment.speculation.draft_tokens = 1;
    deployment.speculation.acceptance = {0.868};  // MT-Bench, K = 1
  }
  return deployment;
}

/// Bounds set for the project: throughput 2 %, TPOT 3 %.
constexpr double kThroughputTolerance = 0.02;
constexpr double kTpotTolerance = 0.03;
/// Of the mean over a run whose first wave comes at once.
constexpr double kTtftTolerance = 0.15;

struct Worst {
  double throughput = 0.0;
  double tpot = 0.0;
  double ttft = 0.0;
};

void note(double& worst, double predicted, double simulated, double tolerance,
          const std::string& at) {
  const double error = predicted / simulated - 1.0;
  EXPECT_LE(std::abs(error), tolerance) << at << ": " << predicted << " for " << simulated;
  worst = std::max(worst, std::abs(error));
}

TEST(ClosedLoop, PredictAgreesWithTheSimulationOn200Scenarios) {
  const std::vector<GridPoint> points = grid();
  ASSERT_EQ(points.size(), 200u);
  Worst worst;
  for (const GridPoint& p : points) {
    Deployment deployment = deployment_at(p);
    // Sampling error of random lengths falls with the root of their number.
    const double rounds = std::max(24.0, 3000.0 / p.concurrency);
    const Traffic traffic = closed_loop_traffic(deployment, p.concurrency, rounds, p.length_ratio);
    deployment.workload.lengths = traffic.lengths;
    deployment.workload.concurrency = {p.concurrency};
    deployment.workload.num_prompts = {static_cast<double>(traffic.num_requests)};
    const Throughput predicted = closed_loop_throughput(deployment, p.concurrency);
    const SimulationResult r = simulate(deployment, traffic, {});
    const std::string at = std::string(p.scenario) + " C=" + std::to_string(p.concurrency) + " " +
                           std::to_string(p.input) + "/" + std::to_string(p.output) +
                           " K=" + std::to_string(p.drafts) +
                           " ratio=" + std::to_string(p.length_ratio) + " " +
                           std::string(name_of(predicted.regime));
    note(worst.throughput, predicted.output_tokens_per_second, r.output_tokens_per_second,
         kThroughputTolerance, at + " run tok/s");
    note(worst.tpot, predicted.tpot_seconds, r.tpot_by_tokens_seconds, kTpotTolerance,
         at + " TPOT");
    note(worst.ttft, predicted.ttft_seconds, r.ttft.mean(), kTtftTolerance, at + " TTFT");
  }
  std::printf("worst: throughput %.2f %%, TPOT %.2f %%, TTFT %.1f %%\n", 100 * worst.throughput,
              100 * worst.tpot, 100 * worst.ttft);
}

struct Variant {
  const char* name;
  EngineKind engine;
  double rounds;
  LengthSpread lengths;
  double throughput_tolerance;
  double tpot_tolerance;
  double ttft_tolerance = kTtftTolerance;
};

// Short runs of spread lengths are mostly ramp and drain: bounds of twice the others'. In mixed
// passes prompts of one cluster queue behind each other, which the formula leaves out of TTFT.
TEST(ClosedLoop, ShortRunsLogNormalLengthsAndMixedPassesAgreeToo) {
  const std::vector<Variant> variants{
      {"three rounds", EngineKind::kSglang, 3, {}, 0.02, 0.03},
      {"three spread rounds", EngineKind::kSglang, 3, LengthSpread::uniform(0.3), 0.04, 0.06},
      {"log-normal", EngineKind::kSglang, 60, LengthSpread::log_normal(0.8), 0.02, 0.03},
      {"mixed", EngineKind::kVllm, 40, {}, 0.02, 0.03, 0.25},
      {"mixed, spread", EngineKind::kVllm, 40, LengthSpread::uniform(0.5), 0.02, 0.03},
  };
  for (const Variant& v : variants) {
    Worst worst;
    for (const GridPoint& p : std::vector<GridPoint>{{"b12x-tp4", 1, 1024, 1024, 0, 1},
                                                     {"b12x-tp4", 4, 1024, 1024, 1, 1},
                                                     {"b12x-tp4", 4, 4096, 512, 0, 1},
                                                     {"b12x-tp4", 16, 4096, 512, 1, 1},
                                                     {"b12x-tp4", 64, 1024, 1024, 0, 1},
                                                     {"b12x-tp4", 64, 4096, 512, 1, 1}}) {
      Deployment deployment = deployment_at(p);
      deployment.engine.kind = v.engine;
      Traffic traffic = closed_loop_traffic(deployment, p.concurrency, v.rounds, 1.0);
      traffic.lengths = v.lengths;
      deployment.workload.lengths = v.lengths;
      deployment.workload.concurrency = {p.concurrency};
      deployment.workload.num_prompts = {static_cast<double>(traffic.num_requests)};
      const Throughput predicted = closed_loop_throughput(deployment, p.concurrency);
      double tokens = 0.0;
      double tpot = 0.0;
      double ttft = 0.0;
      constexpr int kSeeds = 5;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const SimulationResult r =
            simulate(deployment, traffic, {.policy = default_policy(v.engine), .seed = seed});
        tokens += r.output_tokens_per_second / kSeeds;
        tpot += r.tpot_by_tokens_seconds / kSeeds;
        ttft += r.ttft.mean() / kSeeds;
      }
      const std::string at = std::string(v.name) + " C=" + std::to_string(p.concurrency);
      note(worst.throughput, predicted.output_tokens_per_second, tokens, v.throughput_tolerance,
           at + " tok/s");
      note(worst.tpot, predicted.tpot_seconds, tpot, v.tpot_tolerance, at + " TPOT");
      note(worst.ttft, predicted.ttft_seconds, ttft, v.ttft_tolerance, at + " TTFT");
    }
    std::printf("%s: throughput %.2f %%, TPOT %.2f %%, TTFT %.1f %%\n", v.name,
                100 * worst.throughput, 100 * worst.tpot, 100 * worst.ttft);
  }
}

}  // namespace
}  // namespace fulcrum
