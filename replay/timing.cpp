#include "replay/timing.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/check.h"
#include "replay/spin.h"

namespace fulcrum::replay {
namespace {

class Stream {
 public:
  Stream() { FULCRUM_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { FULCRUM_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class Graph {
 public:
  Graph(cudaStream_t stream, int num_launches, const std::function<void(int)>& launch) {
    FULCRUM_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      for (int i = 0; i < num_launches; ++i) launch(i);
    } catch (...) {
      cudaGraph_t broken = nullptr;
      (void)cudaStreamEndCapture(stream, &broken);
      if (broken != nullptr) (void)cudaGraphDestroy(broken);
      throw;
    }
    cudaGraph_t graph = nullptr;
    FULCRUM_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    const cudaError_t code = cudaGraphInstantiate(&executable_, graph, 0);
    (void)cudaGraphDestroy(graph);
    FULCRUM_CUDA_CHECK(code);
  }
  ~Graph() {
    if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void replay(cudaStream_t stream) const {
    FULCRUM_CUDA_CHECK(cudaGraphLaunch(executable_, stream));
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

// Long enough for the host to enqueue the events and the launch behind it.
constexpr std::int64_t kSpinNanoseconds = 60'000;

double elapsed_seconds(cudaEvent_t start, cudaEvent_t stop) {
  float milliseconds = 0;
  FULCRUM_CUDA_CHECK(cudaEventSynchronize(stop));
  FULCRUM_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace

const char* to_string(CacheState cache) { return cache == CacheState::kCold ? "cold" : "warm"; }
const char* to_string(LaunchMode launch) {
  return launch == LaunchMode::kSingle ? "single" : "graph";
}

bool Timing::throttled() const {
  return ((before.throttle_reasons.value_or(0) | after.throttle_reasons.value_or(0)) &
          kThrottleMask) != 0;
}

int sets_for_cold(double rotating_bytes, double l2_bytes) {
  if (rotating_bytes <= 0) return 1;
  const double sets = std::ceil(2.0 * l2_bytes / rotating_bytes) + 1.0;
  return static_cast<int>(std::clamp(sets, 1.0, 4096.0));
}

Timing measure(const TimingOptions& options, int num_sets,
               const std::function<void(int set, cudaStream_t stream)>& launch, const Nvml& nvml) {
  const Stream stream;
  const Event start;
  const Event stop;
  const int sets = options.cache == CacheState::kCold ? std::max(1, num_sets) : 1;

  // First touch: module loading and lazy allocation happen here. The second pass sizes the graph.
  launch(0, stream);
  FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
  const int num_probes = std::max(sets, 3);
  FULCRUM_CUDA_CHECK(launch_spin(kSpinNanoseconds, stream));
  FULCRUM_CUDA_CHECK(cudaEventRecord(start, stream));
  for (int i = 0; i < num_probes; ++i) launch(i % sets, stream);
  FULCRUM_CUDA_CHECK(cudaEventRecord(stop, stream));
  const double estimate_seconds = std::max(1e-7, elapsed_seconds(start, stop) / num_probes);

  Timing timing;
  int next_set = 0;
  if (options.launch == LaunchMode::kGraph) {
    const double wanted = std::ceil(options.graph_seconds / estimate_seconds);
    const int launches =
        static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(options.max_graph_launches)));
    // Whole rounds, so that each sample reads every set equally often.
    timing.launches_per_sample = (launches + sets - 1) / sets * sets;
    const Graph graph(stream, timing.launches_per_sample, [&](int i) { launch(i % sets, stream); });
    graph.replay(stream);
    graph.replay(stream);
    timing.before = nvml.read();
    double total_seconds = 0;
    while (timing.stop_reason == StopReason::kContinue) {
      FULCRUM_CUDA_CHECK(launch_spin(kSpinNanoseconds, stream));
      FULCRUM_CUDA_CHECK(cudaEventRecord(start, stream));
      graph.replay(stream);
      FULCRUM_CUDA_CHECK(cudaEventRecord(stop, stream));
      const double seconds = elapsed_seconds(start, stop);
      total_seconds += seconds;
      timing.samples_seconds.push_back(seconds / timing.launches_per_sample);
      timing.summary = summarize(timing.samples_seconds);
      timing.stop_reason = should_stop(options.stopping, timing.summary, total_seconds);
    }
    graph.replay(stream);
    timing.after = nvml.read();
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    return timing;
  }

  for (int i = 0; i < num_probes; ++i) launch(i % sets, stream);
  timing.before = nvml.read();
  FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
  double total_seconds = 0;
  while (timing.stop_reason == StopReason::kContinue) {
    FULCRUM_CUDA_CHECK(launch_spin(kSpinNanoseconds, stream));
    FULCRUM_CUDA_CHECK(cudaEventRecord(start, stream));
    launch(next_set, stream);
    FULCRUM_CUDA_CHECK(cudaEventRecord(stop, stream));
    const double seconds = elapsed_seconds(start, stop);
    next_set = (next_set + 1) % sets;
    total_seconds += seconds;
    timing.samples_seconds.push_back(seconds);
    timing.summary = summarize(timing.samples_seconds);
    timing.stop_reason = should_stop(options.stopping, timing.summary, total_seconds);
  }
  for (int i = 0; i < num_probes; ++i) launch(i % sets, stream);
  timing.after = nvml.read();
  FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
  return timing;
}

}  // namespace fulcrum::replay
