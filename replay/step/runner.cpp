#include "replay/step/runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/common/check.h"
#include "kernels/common/formats.h"
#include "kernels/elementwise/elementwise_launch.h"
#include "replay/case_parts.h"
#include "replay/cuda_handles.h"
#include "replay/random_fill.h"
#include "replay/statistics.h"

namespace fulcrum::replay {
namespace {

void run_graph(const OwnedGraph& graph, cudaStream_t stream) {
  graph.launch(stream);
  FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
}

class EventList {
 public:
  explicit EventList(std::size_t size) : events_(size) {
    for (cudaEvent_t& event : events_) FULCRUM_CUDA_CHECK(cudaEventCreate(&event));
  }
  ~EventList() {
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  }
  EventList(const EventList&) = delete;
  EventList& operator=(const EventList&) = delete;
  void record(std::size_t i, cudaStream_t stream) {
    FULCRUM_CUDA_CHECK(cudaEventRecordWithFlags(events_[i], stream, cudaEventRecordExternal));
  }
  double seconds(std::size_t from, std::size_t to) const {
    float milliseconds = 0;
    FULCRUM_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events_[from], events_[to]));
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  std::vector<cudaEvent_t> events_;
};

struct Outputs {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint16_t> residual;
  std::vector<float> logits;

  explicit Outputs(const StepRank& rank)
      : tokens(rank.sampled()), residual(rank.residual()), logits(rank.logits()) {}
  bool same_bits(const Outputs& other) const {
    const auto equal = [](const auto& a, const auto& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    return equal(tokens, other.tokens) && equal(residual, other.residual) &&
           equal(logits, other.logits);
  }
  std::string not_finite() const {
    if (std::ranges::any_of(residual, [](std::uint16_t code) {
          return !std::isfinite(kernels::decode_bf16(code));
        })) {
      return "residual";
    }
    if (std::ranges::any_of(logits, [](float value) { return !std::isfinite(value); })) {
      return "logits";
    }
    return "";
  }
};

double median_of(std::vector<double> values) { return summarize(values).median_seconds; }

constexpr std::size_t kEmptyIntervals = 32;
constexpr int kInstrumentedReplays = 7;

// Serial by construction: events between branches would order them.
void measure_ops_in_step(StepRank& rank, const std::vector<ScheduledOp>& schedule,
                         cudaStream_t stream, StepMeasurement& result) {
  const std::size_t n = schedule.size();
  EventList events(n + 1 + kEmptyIntervals);
  std::vector<bool> launched(n);
  const OwnedGraph graph(stream, [&] {
    for (std::size_t i = 0; i < n; ++i) {
      events.record(i, stream);
      launched[i] = rank.launch(schedule[i], stream);
    }
    for (std::size_t i = n; i < n + 1 + kEmptyIntervals; ++i) events.record(i, stream);
  });
  run_graph(graph, stream);
  std::vector<double> whole, empty;
  std::size_t num_ops = 0;
  for (const ScheduledOp& op : schedule) num_ops = std::max(num_ops, op.op + 1);
  std::vector<std::vector<double>> per_op(num_ops);
  for (int replay = 0; replay < kInstrumentedReplays; ++replay) {
    run_graph(graph, stream);
    whole.push_back(events.seconds(0, n));
    empty.push_back(events.seconds(n, n + kEmptyIntervals) / kEmptyIntervals);
    std::vector<double> seconds(per_op.size(), 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      if (launched[i]) seconds[schedule[i].op] += events.seconds(i, i + 1);
    }
    for (std::size_t op = 0; op < per_op.size(); ++op) per_op[op].push_back(seconds[op]);
  }
  result.instrumented_seconds = median_of(whole);
  result.event_seconds = median_of(empty);
  std::vector<double> executions(per_op.size(), 0.0);
  std::vector<double> intervals(per_op.size(), 0.0);
  double num_launched = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!launched[i]) continue;
    num_launched += 1.0;
    intervals[schedule[i].op] += 1.0;
    if (schedule[i].part == 0) executions[schedule[i].op] += 1.0;
  }
  // An event drains the GPU and delays the launch behind it; what all events together add to the
  // step is shared out evenly, so that the ops sum to the step without events.
  const double empty_seconds = static_cast<double>(n) - num_launched > 0.0
                                   ? (static_cast<double>(n) - num_launched) * result.event_seconds
                                   : 0.0;
  const double added_seconds =
      (result.instrumented_seconds - empty_seconds - result.graph.summary.median_seconds) /
      num_launched;
  result.added_per_launch_seconds = added_seconds;
  for (std::size_t op = 0; op < per_op.size(); ++op) {
    if (executions[op] > 0.0) {
      result.ops.push_back({op, executions[op],
                            std::max(0.0, median_of(per_op[op]) - intervals[op] * added_seconds)});
    }
  }
}

}  // namespace

StepStreams::StepStreams() {
  FULCRUM_CUDA_CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  for (int i = 1; i < kMaxBranches; ++i) {
    FULCRUM_CUDA_CHECK(cudaStreamCreateWithFlags(&branch[i], cudaStreamNonBlocking));
    FULCRUM_CUDA_CHECK(cudaEventCreateWithFlags(&join[i], cudaEventDisableTiming));
  }
}

StepStreams::~StepStreams() {
  if (fork != nullptr) (void)cudaEventDestroy(fork);
  for (int i = 1; i < kMaxBranches; ++i) {
    if (branch[i] != nullptr) (void)cudaStreamDestroy(branch[i]);
    if (join[i] != nullptr) (void)cudaEventDestroy(join[i]);
  }
}

void enqueue_step(StepRank& rank, const std::vector<ScheduledOp>& schedule, cudaStream_t stream,
                  StepStreams* side) {
  for (std::size_t i = 0; i < schedule.size();) {
    const Segment segment = schedule[i].segment;
    if (segment == Segment::kSerial || side == nullptr) {
      rank.launch(schedule[i++], stream);
      continue;
    }
    std::size_t end = i;
    bool used[StepStreams::kMaxBranches] = {};
    for (; end < schedule.size() && schedule[end].segment == segment &&
           schedule[end].layer == schedule[i].layer;
         ++end) {
      used[schedule[end].branch] = true;
    }
    FULCRUM_CUDA_CHECK(cudaEventRecord(side->fork, stream));
    for (int b = 1; b < StepStreams::kMaxBranches; ++b) {
      if (used[b]) FULCRUM_CUDA_CHECK(cudaStreamWaitEvent(side->branch[b], side->fork));
    }
    for (; i < end; ++i) {
      const int b = schedule[i].branch;
      rank.launch(schedule[i], b == 0 ? stream : side->branch[b]);
    }
    for (int b = 1; b < StepStreams::kMaxBranches; ++b) {
      if (!used[b]) continue;
      FULCRUM_CUDA_CHECK(cudaEventRecord(side->join[b], side->branch[b]));
      FULCRUM_CUDA_CHECK(cudaStreamWaitEvent(stream, side->join[b]));
    }
  }
}

StepMeasurement measure_step(StepRank& rank, const std::vector<ScheduledOp>& schedule,
                             const StepCell& cell, const RunOptions& options, const Nvml& nvml) {
  rank.configure(cell);
  StepMeasurement result;
  const OwnedStream stream;
  std::optional<StepStreams> side;
  if (options.side_streams) side.emplace();
  StepStreams* const streams = side ? &*side : nullptr;

  // Rings and cache rows settle in the first pass; from then on a step rewrites what it reads.
  for (int i = 0; i < 2; ++i) enqueue_step(rank, schedule, stream, streams);
  FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
  {
    const Outputs eager(rank);
    result.not_finite = eager.not_finite();
    const OwnedGraph graph(stream, [&] { enqueue_step(rank, schedule, stream, streams); });
    run_graph(graph, stream);
    result.eager_equals_graph = Outputs(rank).same_bits(eager);
  }
  const auto whole = [&](int, cudaStream_t on) { enqueue_step(rank, schedule, on, streams); };
  TimingOptions timing{.cache = CacheState::kWarm,  // a step evicts its own weights
                       .launch = LaunchMode::kGraph,
                       .stopping = options.stopping,
                       .max_graph_launches = 1};
  result.graph = measure(timing, 1, whole, nvml);
  if (options.eager) {
    timing.launch = LaunchMode::kSingle;
    timing.stopping.min_samples = 5;
    timing.stopping.max_samples = 9;
    result.eager = measure(timing, 1, whole, nvml);
  }
  if (options.per_op) measure_ops_in_step(rank, schedule, stream, result);
  return result;
}

namespace {

/// Reads twice the L2 cache, so that nothing of what ran before is left in it. (Flushing the
/// instruction caches too made ops alone slower than in the step: large kernels by a half.)
class Flush {
 public:
  explicit Flush(std::int64_t l2_bytes)
      : data_(static_cast<std::size_t>(2 * l2_bytes)), sum_(1024) {
    fill_bytes(data_.data(), length(data_), 99, nullptr);
  }
  void launch(cudaStream_t stream) {
    FULCRUM_CUDA_CHECK(kernels::stream_read(
        {.num_bytes = length(data_) / 16 * 16, .in = data_.data(), .out = sum_.data()}, stream));
  }

 private:
  kernels::DeviceBuffer<std::uint8_t> data_;
  kernels::DeviceBuffer<std::uint32_t> sum_;
};

}  // namespace

std::optional<OpAlone> measure_op(StepRank& rank, const std::vector<ScheduledOp>& schedule, OpId id,
                                  const StepCell& cell, std::int64_t l2_bytes, const Nvml& nvml) {
  if (!absence_of(id, rank.has_collectives()).empty()) return std::nullopt;
  rank.configure(cell);
  std::vector<ScheduledOp> launched;
  for (const ScheduledOp& op : schedule) {
    if (absence_of(op.id, rank.has_collectives()).empty()) launched.push_back(op);
  }
  // Of the target pass, or of the first draft pass where only drafts have the op.
  std::vector<std::size_t> places;
  OpAlone alone;
  alone.id = id;
  for (std::size_t i = 0; i < launched.size(); ++i) {
    if (launched[i].id != id || (!places.empty() && launched[i].pass != launched[places[0]].pass)) {
      continue;
    }
    places.push_back(i);
    if (launched[i].part == 0) ++alone.executions;
  }
  if (places.empty()) return std::nullopt;
  alone.parts = static_cast<double>(places.size()) / alone.executions;

  constexpr std::size_t kMostPlaces = 32;  // evenly over the layers
  const std::size_t count = std::min(places.size(), kMostPlaces);
  const auto place_of = [&](int set) {
    return places[static_cast<std::size_t>(set) % count * places.size() / count];
  };
  Flush flush(l2_bytes);
  const auto before = [&](int set, cudaStream_t stream) {
    const std::size_t i = place_of(set);
    flush.launch(stream);
    rank.launch(launched[i == 0 ? launched.size() - 1 : i - 1], stream);
  };
  const TimingOptions options{.cache = CacheState::kCold,
                              .launch = LaunchMode::kGraph,
                              .stopping = {.min_samples = 7,
                                           .max_samples = 15,
                                           .relative_half_width = 0.001,
                                           .max_total_seconds = 0.04},
                              .max_graph_launches = static_cast<int>(count)};
  const auto sets = static_cast<int>(count);
  alone.without = measure(options, sets, before, nvml);
  alone.with = measure(
      options, sets,
      [&](int set, cudaStream_t stream) {
        before(set, stream);
        rank.launch(launched[place_of(set)], stream);
      },
      nvml);
  alone.hot = measure(
      options, sets,
      [&](int set, cudaStream_t stream) { rank.launch(launched[place_of(set)], stream); }, nvml);
  return alone;
}

}  // namespace fulcrum::replay
