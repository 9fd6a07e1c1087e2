// One hour of C=64 traffic: seconds simulated a second.
#include <benchmark/benchmark.h>

#include "model/simulate.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

void one_hour_at_64(benchmark::State& bench, const char* scenario, std::int64_t requests) {
  const Deployment deployment = test::deployment(scenario);
  Traffic traffic;
  traffic.concurrency = 64;
  traffic.num_requests = requests;
  traffic.input_tokens = deployment.workload.input_tokens;
  traffic.output_tokens = deployment.workload.output_tokens;
  traffic.lengths = LengthSpread::uniform(0.5);
  double simulated_seconds = 0.0;
  for (auto _ : bench) simulated_seconds += simulate(deployment, traffic, {}).makespan_seconds;
  bench.counters["x_real_time"] =
      benchmark::Counter(simulated_seconds, benchmark::Counter::kIsRate);
  bench.counters["simulated_s"] = simulated_seconds / static_cast<double>(bench.iterations());
}
BENCHMARK_CAPTURE(one_hour_at_64, august, "b12x-tp4", 4400);
BENCHMARK_CAPTURE(one_hour_at_64, june_mtp, "campaign-b", 128);

}  // namespace
}  // namespace fulcrum
