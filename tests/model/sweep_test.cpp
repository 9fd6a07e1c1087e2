#include "model/sweep.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "model/errors.h"
#include "model/io/sweep_plan.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

TEST(Sweep, GivesWhatPredictGives) {
  for (const char* name : {"campaign-a", "campaign-b", "campaign-stock"}) {
    const Deployment swept = test::deployment(name);
    Deployment deployment = swept;
    std::vector<SweepPoint> points;
    for (double input : {512.0, 8192.0, 65536.0}) {
      for (double c : {1.0, 7.0, 16.0, 600.0}) points.push_back({c, input, 256.0});
    }
    std::vector<SweepRow> rows(points.size());
    SweepRunner(swept, 2).run(points, rows);
    for (std::size_t i = 0; i < points.size(); ++i) {
      deployment.workload.input_tokens = points[i].input_tokens;
      deployment.workload.output_tokens = points[i].output_tokens;
      // Prompts stay with the concurrency they are stated for; others run in steady state.
      const auto prompts = swept.workload.prompts_at(points[i].concurrency);
      deployment.workload.concurrency = {points[i].concurrency};
      deployment.workload.num_prompts.clear();
      if (prompts) deployment.workload.num_prompts = {*prompts};
      const PredictionPoint expected = predict(deployment).points.front();
      EXPECT_EQ(rows[i].effective_batch, expected.effective_batch) << name << " " << i;
      EXPECT_EQ(rows[i].batch_limiter, expected.batch_limiter) << name << " " << i;
      EXPECT_EQ(rows[i].step_seconds.p95, expected.step_seconds.p95) << name << " " << i;
      EXPECT_EQ(rows[i].tpot_seconds.p05, expected.tpot_seconds.p05) << name << " " << i;
      EXPECT_EQ(rows[i].ttft_seconds.p50, expected.ttft_seconds.p50) << name << " " << i;
      EXPECT_EQ(rows[i].output_tokens_per_second.p50, expected.output_tokens_per_second.p50)
          << name << " " << i;
    }
  }
}

TEST(Sweep, DoesNotDependOnTheNumberOfThreads) {
  const Deployment deployment = test::deployment("campaign-b");
  std::vector<SweepPoint> points;
  for (double c = 1.0; c < 200.0; c += 1.0) points.push_back({c, 1024.0 * (1.0 + c), 512.0});
  std::vector<SweepRow> one(points.size());
  SweepRunner(deployment, 1).run(points, one);
  for (int threads : {2, 3, 7}) {
    std::vector<SweepRow> many(points.size());
    SweepRunner(deployment, threads).run(points, many);
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(one[i].output_tokens_per_second.p50, many[i].output_tokens_per_second.p50);
    }
  }
}

TEST(Sweep, AFailureInAThreadIsTheCallersException) {
  EXPECT_THROW(for_parts(10, 3,
                         [](std::size_t part, std::size_t, std::size_t) {
                           if (part == 1) throw std::runtime_error("planted");
                         }),
               std::runtime_error);
}

TEST(SweepAxis, ReadsListsRangesStepsAndFactors) {
  const auto numbers = [](const std::string& text) {
    std::string all;
    for (const auto& value : io::parse_sweep_axis(text).values) all += value.dump() + " ";
    return all;
  };
  EXPECT_EQ(numbers("concurrency=1,8,16"), "1 8 16 ");
  EXPECT_EQ(numbers("concurrency=3:6"), "3 4 5 6 ");
  EXPECT_EQ(numbers("concurrency=1:10:4"), "1 5 9 ");
  EXPECT_EQ(numbers("concurrency=1:32:*4"), "1 4 16 ");
  EXPECT_EQ(numbers("engine.memory_fraction=0.8:0.9:0.05"), "0.8 0.85 0.9 ");
  EXPECT_EQ(numbers("engine.cuda_graph=true,false"), "true false ");
  EXPECT_EQ(numbers("kernel_set=a,b"), "\"a\" \"b\" ");
  EXPECT_EQ(numbers("/speculation={\"method\":\"none\"},{\"method\":\"mtp\",\"k\":1}"),
            "{\"method\":\"none\"} {\"k\":1,\"method\":\"mtp\"} ");
}

TEST(SweepAxis, RefusesWhatHasNoValues) {
  for (const char* text :
       {"concurrency", "=1", "concurrency=", "concurrency=5:1", "concurrency=1:5:0",
        "concurrency=0:5:*2", "concurrency=1:1e9", "concurrency=1:x"}) {
    EXPECT_THROW(io::parse_sweep_axis(text), InputError) << text;
  }
}

TEST(SweepPlan, NumbersItsPointsWithConcurrencyInnermost) {
  const auto plan = io::make_sweep_plan(
      io::read_scenario("campaign-a"),
      {io::parse_sweep_axis("concurrency=1,2,3"), io::parse_sweep_axis("input_tokens=10,20"),
       io::parse_sweep_axis("engine.cuda_graph=true,false")});
  EXPECT_EQ(plan.num_points(), 12u);
  EXPECT_EQ(plan.point(0).concurrency, 1.0);
  EXPECT_EQ(plan.point(4).concurrency, 2.0);
  EXPECT_EQ(plan.point(4).input_tokens, 20.0);
  EXPECT_EQ(plan.setting_values(5)[0], true);
  EXPECT_EQ(plan.setting_values(6)[0], false);
}

TEST(SweepPlan, RefusesAnAxisGivenTwiceAndLengthsPastTheMaximum) {
  const auto scenario = io::read_scenario("campaign-a");
  EXPECT_THROW(io::make_sweep_plan(scenario, {io::parse_sweep_axis("concurrency=1"),
                                              io::parse_sweep_axis("/workload/concurrency=2")}),
               InputError);
  const auto plan = io::make_sweep_plan(scenario, {io::parse_sweep_axis("input_tokens=2000000")});
  std::vector<std::string> warnings;
  EXPECT_THROW(run_sweep(
                   plan, 0, 1, 1, [](const io::SweepBlock&) {}, warnings),
               InputError);
}

}  // namespace
}  // namespace fulcrum
