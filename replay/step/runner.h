// Runs the scheduled ops of a rank: the whole step eager and as one CUDA graph, with events between
// the ops, and every op alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/nvml.h"
#include "replay/step/rank.h"
#include "replay/timing.h"

namespace fulcrum::replay {

struct RunOptions {
  bool side_streams = false;  ///< branches of a segment on streams of their own
  bool eager = true;          ///< also time the step launched by the host
  bool per_op = true;         ///< also time every op inside the graph
  StoppingRule stopping{
      .min_samples = 11, .max_samples = 60, .relative_half_width = 0.002, .max_total_seconds = 0.5};
};

/// One op of the graph inside the step: all its executions together.
struct OpInStep {
  std::size_t op = 0;  ///< index into StepGraph::ops
  double executions = 0.0;
  double seconds = 0.0;  ///< median over replays, less its share of what the events add
};

struct StepMeasurement {
  Timing graph;
  std::optional<Timing> eager;
  std::vector<OpInStep> ops;              ///< empty without per_op
  double instrumented_seconds = 0.0;      ///< of the graph with events, median
  double event_seconds = 0.0;             ///< from one event to the next with nothing between
  double added_per_launch_seconds = 0.0;  ///< what an event adds to the launch behind it
  bool eager_equals_graph = false;        ///< bit by bit: tokens, residual, logits
  std::string not_finite;                 ///< what held a NaN or an infinity; empty: nothing
};

/// Measures the step of `cell` on the current device. Throws kernels::CudaError.
StepMeasurement measure_step(StepRank& rank, const std::vector<ScheduledOp>& schedule,
                             const StepCell& cell, const RunOptions& options, const Nvml& nvml);

/// One op alone, as the step meets it: after a flush of the L2 cache
/// (between two executions of an op a step reads a layer's weights),
/// behind its predecessor (which leaves its inputs in the cache and another kernel's code on the
/// SMs). Its time is what it adds to flush and predecessor. Timings are graphs over places in all
/// layers.
struct OpAlone {
  OpId id = OpId::kEmbedding;
  int executions = 0;
  double parts = 1.0;  ///< places per execution
  Timing with;         ///< flush, predecessor, op; per place
  Timing without;      ///< flush, predecessor
  Timing hot;          ///< the op behind itself, without flush: what a benchmark loop would report
  double seconds() const {
    return parts * (with.summary.median_seconds - without.summary.median_seconds);
  }
};
/// Nothing when no kernel runs the op.
std::optional<OpAlone> measure_op(StepRank& rank, const std::vector<ScheduledOp>& schedule, OpId id,
                                  const StepCell& cell, std::int64_t l2_bytes, const Nvml& nvml);

/// Enqueues the whole schedule; with `side_streams` a segment's branches run side by side.
class StepStreams;
void enqueue_step(StepRank& rank, const std::vector<ScheduledOp>& schedule, cudaStream_t stream,
                  StepStreams* side_streams);

/// Side streams and the events of their forks and joins.
class StepStreams {
 public:
  StepStreams();
  ~StepStreams();
  StepStreams(const StepStreams&) = delete;
  StepStreams& operator=(const StepStreams&) = delete;

  static constexpr int kMaxBranches = 3;
  cudaStream_t branch[kMaxBranches] = {};  ///< [0] unused: the main stream
  cudaEvent_t fork = nullptr;
  cudaEvent_t join[kMaxBranches] = {};
};

}  // namespace fulcrum::replay
