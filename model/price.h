// Prices one step: every op's launches through its cost law, overlap of side streams, host gaps.
#pragma once

#include <array>
#include <vector>

#include "model/deployment.h"
#include "model/step_graph.h"
#include "model/tally.h"

namespace fulcrum {

/// One op of a priced step. Times cover all its executions in the step.
struct PricedOp {
  double busy_seconds = 0.0;   ///< sum of the kernels' own times
  double seconds = 0.0;        ///< its part of the step: busy time less what overlaps
  double floor_seconds = 0.0;  ///< roofline at datasheet peaks
  Limiter limiter = Limiter::kLatency;
};

struct StepPrice {
  std::vector<PricedOp> ops;  ///< parallel to the graph's ops
  double gpu_seconds = 0.0;   ///< sum of the ops' seconds
  double gap_seconds = 0.0;   ///< GPU idle: host-bound launches and step overhead
  double log_sigma = 0.0;     ///< of the total, from the bindings' discrepancies
  bool eager = false;
  /// Scratch of the pricer: spread of each kernel's ops in seconds.
  std::vector<double> group_sigma_seconds;
  double total_seconds() const { return gpu_seconds + gap_seconds; }
};

/// A step graph with its kernels bound; immutable, safe to share between threads.
class StepPricer {
 public:
  explicit StepPricer(const Deployment& deployment);

  /// Fills `price`, reusing its storage. No allocation once `price` has been used.
  void price(const StepState& state, StepPrice& price) const;

  const StepGraph& graph() const { return graph_; }
  const KernelBinding& binding(const StepOp& op) const { return kernels_.binding(op.id); }
  const LawDevice& device() const { return device_; }

  /// Prices as if the ops of these bindings took no time: the Amdahl ceiling of replacing them.
  void set_free(const std::vector<OpId>& ops);

 private:
  void count_launches();
  void apply_overlap(StepPrice& price) const;
  double host_gap_seconds(const StepPrice& price) const;

  StepGraph graph_;
  KernelSet kernels_;
  LawDevice device_;
  EngineSettings engine_;
  std::vector<int> kernel_group_;  ///< ops of one kernel share a group: their errors correlate
  int num_kernel_groups_ = 0;
  std::vector<std::array<double, kNumLayerKinds>> executions_;  ///< of each op, by layer kind
  /// Ops of the attention-input and feed-forward segments, whose branches may overlap.
  std::array<std::vector<std::size_t>, 2> branch_ops_;
  std::array<double, kNumLayerKinds> layer_launches_{};  ///< kernels launched by one layer
  double other_launches_ = 0.0;                          ///< kernels launched outside layers
};

}  // namespace fulcrum
