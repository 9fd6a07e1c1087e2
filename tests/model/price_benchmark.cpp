// Microseconds per priced step, warm, on one core.
#include <benchmark/benchmark.h>

#include "model/predict.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

void price_step(benchmark::State& bench, const char* scenario) {
  const StepPricer pricer(test::deployment(scenario));
  StepPrice price;
  double requests = 1.0;
  for (auto _ : bench) {
    requests = requests >= 64.0 ? 1.0 : requests + 1.0;
    pricer.price({.requests = requests,
                  .tokens_per_request = 1.0 + pricer.graph().settings.num_draft_tokens,
                  .context = 1024.0 + requests,
                  .logits_rows = requests},
                 price);
    benchmark::DoNotOptimize(price.gpu_seconds);
  }
  bench.SetItemsProcessed(bench.iterations());
}
BENCHMARK_CAPTURE(price_step, june_eager, "campaign-stock");
BENCHMARK_CAPTURE(price_step, june_graph, "campaign-a");
BENCHMARK_CAPTURE(price_step, june_graph_mtp1, "campaign-b");
BENCHMARK_CAPTURE(price_step, august_graph, "b12x-tp4");

void predict_three_points(benchmark::State& bench) {
  const Deployment deployment = test::deployment("campaign-a");
  for (auto _ : bench) benchmark::DoNotOptimize(predict(deployment));
}
BENCHMARK(predict_three_points);

void load_scenario(benchmark::State& bench) {
  for (auto _ : bench) benchmark::DoNotOptimize(test::deployment("campaign-a"));
}
BENCHMARK(load_scenario);

}  // namespace
}  // namespace fulcrum
