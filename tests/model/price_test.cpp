#include "model/price.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "model/predict.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

const char* const kScenarios[] = {"campaign-stock", "campaign-a", "campaign-b", "b12x-tp4"};

TEST(Price, BreakdownSumsToTheStep) {
  for (const char* name : kScenarios) {
    for (const PredictionPoint& point : predict(test::deployment(name)).points) {
      double sum = 0.0;
      double shares = 0.0;
      for (const BreakdownLine& line : point.breakdown) {
        sum += line.seconds;
        shares += line.share_fraction;
      }
      EXPECT_NEAR(sum, point.step_seconds.p50, 1e-9 * sum) << name;
      EXPECT_NEAR(shares, 1.0, 1e-9) << name;
    }
  }
}

TEST(Price, NoKernelIsFasterThanItsRoofline) {
  // A law may be calibrated above datasheet peaks by its error; 5 % covers rounding of peaks.
  constexpr double kSlack = 0.95;
  for (const char* name : kScenarios) {
    const StepPricer pricer(test::deployment(name));
    StepPrice price;
    for (double requests : {1.0, 2.0, 7.0, 16.0, 64.0, 256.0}) {
      for (double context : {1.0, 1000.0, 100000.0}) {
        const StepState state{.requests = requests, .context = context, .logits_rows = requests};
        pricer.price(state, price);
        for (std::size_t i = 0; i < price.ops.size(); ++i) {
          const StepOp& op = pricer.graph().ops[i];
          if (pricer.binding(op).law == "fused") continue;
          EXPECT_GE(price.ops[i].busy_seconds, kSlack * price.ops[i].floor_seconds)
              << name << " " << name_of(op.id) << " at " << requests << " x " << context;
        }
      }
    }
  }
}

TEST(Price, EveryTimeIsFiniteAndNotNegativeOverExtremeStates) {
  std::mt19937_64 random(20260601);
  std::uniform_real_distribution<double> log_requests(0.0, std::log(1e5));
  std::uniform_real_distribution<double> log_context(0.0, std::log(1e6));
  for (const char* name : kScenarios) {
    const StepPricer pricer(test::deployment(name));
    StepPrice price;
    for (int trial = 0; trial < 200; ++trial) {
      StepState state;
      state.requests = std::floor(std::exp(log_requests(random)));
      state.tokens_per_request = 1.0 + trial % 6;
      state.context = std::floor(std::exp(log_context(random)));
      state.logits_rows = state.tokens();
      state.prefill = trial % 5 == 0;
      pricer.price(state, price);
      EXPECT_TRUE(std::isfinite(price.total_seconds()));
      EXPECT_TRUE(std::isfinite(price.log_sigma));
      EXPECT_GE(price.gap_seconds, 0.0);
      for (const PricedOp& op : price.ops) {
        EXPECT_GE(op.seconds, 0.0);
        EXPECT_LE(op.seconds, op.busy_seconds * (1.0 + 1e-12));
      }
    }
  }
}

TEST(Price, MoreRequestsNeverMakeAStepFaster) {
  // Tile menus and protocol switches may step down slightly; real kernels do too.
  constexpr double kSlack = 0.97;
  for (const char* name : kScenarios) {
    const StepPricer pricer(test::deployment(name));
    StepPrice price;
    double previous = 0.0;
    for (double requests = 1.0; requests <= 256.0; requests *= 2.0) {
      pricer.price({.requests = requests, .context = 2000, .logits_rows = requests}, price);
      EXPECT_GE(price.gpu_seconds, kSlack * previous) << name << " at " << requests;
      previous = price.gpu_seconds;
    }
  }
}

TEST(Price, EagerIsNeverFasterThanGraphs) {
  for (double concurrency : {1.0, 16.0}) {
    const auto graph = closed_loop_throughput(
        test::deployment("campaign-a", {{"/engine/cuda_graph", true}}), concurrency);
    const auto eager = closed_loop_throughput(
        test::deployment("campaign-a", {{"/engine/cuda_graph", false}}), concurrency);
    EXPECT_GE(graph.output_tokens_per_second, eager.output_tokens_per_second);
  }
}

TEST(Price, StepsBeyondTheCapturedSizesRunEager) {
  const StepPricer pricer(
      test::deployment("campaign-a", {{"/engine/graph_capture_max_tokens", 8}}));
  StepPrice price;
  pricer.price({.requests = 8, .context = 10, .logits_rows = 8}, price);
  EXPECT_FALSE(price.eager);
  pricer.price({.requests = 9, .context = 10, .logits_rows = 9}, price);
  EXPECT_TRUE(price.eager);
}

TEST(Price, TheSameStateIsPricedTheSameTwice) {
  const StepPricer pricer(test::deployment("campaign-a"));
  StepPrice first;
  StepPrice second;
  const StepState state{.requests = 5, .context = 777, .logits_rows = 5};
  pricer.price(state, first);
  pricer.price({.requests = 100, .context = 7, .logits_rows = 100}, second);
  pricer.price(state, second);
  EXPECT_EQ(first.total_seconds(), second.total_seconds());
}

TEST(Price, KeptCostsAreThoseOfAFreshPrice) {
  // One StepPrice through states and pricers that share addresses; each must equal a fresh one.
  StepPrice reused;
  for (const char* name : kScenarios) {
    StepPricer pricer(test::deployment(name));
    for (int round = 0; round < 2; ++round) {
      for (double requests : {1.0, 3.0, 3.0, 600.0, 2.5, 1.0}) {
        for (double width : {1.0, 2.0}) {
          const StepState state{.requests = requests,
                                .tokens_per_request = width,
                                .context = 100.0 * requests,
                                .logits_rows = requests * width};
          StepPrice fresh;
          pricer.price(state, fresh);
          pricer.price(state, reused);
          EXPECT_EQ(fresh.total_seconds(), reused.total_seconds()) << name << " " << requests;
        }
      }
      pricer.set_free({OpId::kWqkvA});
    }
  }
}

TEST(Memory, MoreMemoryNeverLowersTheBatch) {
  double previous = 0.0;
  for (double fraction : {0.46, 0.5, 0.6, 0.8, 1.0}) {
    const Deployment deployment =
        test::deployment("campaign-a", {{"/engine/memory_fraction", fraction}});
    const double batch = effective_batch(deployment, 1e5, 100000.0).requests;
    EXPECT_GE(batch, previous);
    previous = batch;
  }
  EXPECT_GT(previous, 0.0);
}

TEST(Memory, WeightsThatDoNotFitGiveNoBatch) {
  const Deployment deployment = test::deployment("campaign-a", {{"/engine/memory_fraction", 0.2}});
  EXPECT_FALSE(memory_ledger(deployment).fits);
  EXPECT_EQ(effective_batch(deployment, 4.0, 1000.0).requests, 0.0);
  const Prediction prediction = predict(deployment);
  ASSERT_FALSE(prediction.warnings.empty());
  EXPECT_NE(prediction.warnings[0].find("no room"), std::string::npos);
}

TEST(Speculation, ZeroAcceptanceNeverBeatsNoSpeculation) {
  for (double concurrency : {1.0, 16.0, 64.0}) {
    const auto plain = closed_loop_throughput(test::deployment("campaign-a"), concurrency);
    const auto drafted = closed_loop_throughput(
        test::deployment("campaign-b", {{"/speculation/acceptance", {0.0}},
                                        {"/engine/max_running_requests", 256}}),
        concurrency);
    EXPECT_LT(drafted.output_tokens_per_second, plain.output_tokens_per_second);
  }
}

}  // namespace
}  // namespace fulcrum
