// Timing of launches. Cold and warm, single launch and graph replay are different measurements and
// never mixed.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "replay/nvml.h"
#include "replay/statistics.h"

namespace fulcrum::replay {

// kCold: each launch reads a set of inputs that at least 2x L2 of other traffic separates from its
// last use, as in a decode step that walks through all layers. kWarm: every launch reads the same
// set.
enum class CacheState { kCold, kWarm };
// kSingle: one launch between two events, queued behind a spinning kernel so that the host's launch
// cost is hidden but the device's launch floor is not. kGraph: many launches in one CUDA graph,
// time divided by their number, as an engine that replays its decode step.
enum class LaunchMode { kSingle, kGraph };
const char* to_string(CacheState cache);
const char* to_string(LaunchMode launch);

struct TimingOptions {
  CacheState cache = CacheState::kCold;
  LaunchMode launch = LaunchMode::kGraph;
  StoppingRule stopping;
  // A graph holds enough launches to run at least this long, so that event resolution (about 0.5
  // us) is below 0.1 % of a sample.
  double graph_seconds = 1e-3;
  int max_graph_launches = 1024;
};

struct Timing {
  std::vector<double> samples_seconds;  // Per launch, in the order they were taken.
  int launches_per_sample = 1;
  SampleSummary summary;
  StopReason stop_reason = StopReason::kContinue;
  DeviceState before;  // While the warm-up runs, so that clocks are those under load.
  DeviceState after;   // While the last sample runs.
  bool throttled() const;
};

// `launch(set, stream)` enqueues one invocation on set [0, num_sets). Throws kernels::CudaError.
Timing measure(const TimingOptions& options, int num_sets,
               const std::function<void(int set, cudaStream_t stream)>& launch, const Nvml& nvml);

// Sets needed so that the others evict one: total at least 2x L2 plus the set itself,
// within 1..4096.
int sets_for_cold(double rotating_bytes, double l2_bytes);

}  // namespace fulcrum::replay
