// Prices one step: every op's launches through its cost law, overlap of side streams, host gaps.
#pragma once

#include <array>
#include <cstdint>
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

/// Costs of the ops that depend on the tokens of a step and not on its context, kept per number of
/// requests: a change of context, or a concurrency seen before, prices only attention anew.
class TokenCosts {
 public:
  /// One launch of an op.
  struct Cost {
    double seconds = 0.0;
    double floor_seconds = 0.0;
    Limiter limiter = Limiter::kLatency;
  };

 private:
  friend class StepPricer;
  /// What the rows hold for; rows of another pricer or shape of step are dropped.
  struct Key {
    std::uint64_t pricer = 0;
    double tokens_per_request = 0.0;
    double logits_rows_per_request = 0.0;
    bool prefill = false;
    bool operator==(const Key&) const = default;
  };
  Key key_;
  std::vector<std::vector<Cost>> rows_;  ///< [requests][op]; an empty row is not priced yet
};

struct StepPrice {
  std::vector<PricedOp> ops;  ///< parallel to the graph's ops
  double gpu_seconds = 0.0;   ///< sum of the ops' seconds
  double gap_seconds = 0.0;   ///< GPU idle: host-bound launches and step overhead
  double log_sigma = 0.0;     ///< of the total, from the bindings' discrepancies
  bool eager = false;
  /// Scratch of the pricer: spread of each kernel's ops in seconds, and costs priced before.
  std::vector<double> group_sigma_seconds;
  TokenCosts token_costs;
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
  /// Prices every launch at its roofline floor: what the best kernels could do.
  void set_at_roofline();

 private:
  void count_launches();
  TokenCosts::Cost price_launch(const StepOp& op, const StepState& state) const;
  /// The row of the cache for `state`, or null where requests are too many or no whole number.
  const std::vector<TokenCosts::Cost>* token_costs(const StepState& state, TokenCosts& costs) const;
  void apply_overlap(StepPrice& price) const;
  double host_gap_seconds(const StepPrice& price) const;

  std::uint64_t id_;  ///< of this pricer and what was set on it, for caches
  bool at_roofline_ = false;
  StepGraph graph_;
  KernelSet kernels_;
  LawDevice device_;
  EngineSettings engine_;
  std::vector<int> kernel_group_;  ///< ops of one kernel share a group: their errors correlate
  int num_kernel_groups_ = 0;
  std::vector<std::array<double, kNumLayerKinds>> executions_;  ///< of each op, by layer kind
  /// Ops of the attention-input and feed-forward segments, whose branches may overlap.
  std::array<std::vector<std::size_t>, 2> branch_ops_;
  std::vector<bool> reads_context_;  ///< of each op: its launch depends on the context
  std::array<double, kNumLayerKinds> layer_launches_{};  ///< kernels launched by one layer
  double other_launches_ = 0.0;                          ///< kernels launched outside layers
};

}  // namespace fulcrum
