#include "model/price.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace fulcrum {
namespace {

constexpr int kMaxBranches = 3;
constexpr std::size_t kNumKinds = kNumLayerKinds;

/// Distinguishes pricers in caches, also after one was destroyed and another took its address.
std::uint64_t next_pricer_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// Executions of `op` in all layers of kind `k`.
double executions_in(const StepGraph& graph, const StepOp& op, std::size_t k) {
  const double layers = op.draft ? (k == static_cast<std::size_t>(LayerKind::kSwa) ? 1.0 : 0.0)
                                 : graph.model.count(static_cast<LayerKind>(k));
  return op.per_layer[k] * layers;
}

}  // namespace

StepPricer::StepPricer(const Deployment& deployment)
    : id_(next_pricer_id()),
      graph_(build_step_graph(deployment.model, deployment.graph_settings())),
      kernels_(deployment.kernels),
      device_(deployment.law_device()),
      engine_(deployment.engine) {
  std::vector<const std::string*> names;
  for (const StepOp& op : graph_.ops) {
    const KernelBinding& bound = binding(op);
    const auto same = std::find_if(names.begin(), names.end(),
                                   [&](const std::string* name) { return *name == bound.kernel; });
    kernel_group_.push_back(static_cast<int>(same - names.begin()));
    if (same == names.end()) names.push_back(&bound.kernel);
  }
  num_kernel_groups_ = static_cast<int>(names.size());
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const StepOp& op = graph_.ops[i];
    std::array<double, kNumKinds> counts{};
    for (std::size_t k = 0; k < kNumKinds; ++k) counts[k] = executions_in(graph_, op, k);
    executions_.push_back(counts);
    reads_context_.push_back(std::holds_alternative<AttentionLaunch>(op.shape) ||
                             std::holds_alternative<ContextScanLaunch>(op.shape) ||
                             op.id == OpId::kIndexerTopK);
    if (op.draft || op.segment == Segment::kSerial || op.count == 0.0) continue;
    branch_ops_[op.segment == Segment::kAttentionInput ? 0 : 1].push_back(i);
  }
  count_launches();
}

void StepPricer::count_launches() {
  layer_launches_ = {};
  other_launches_ = 0.0;
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const StepOp& op = graph_.ops[i];
    const double launches = binding(op).launches;
    double in_layers = 0.0;
    for (std::size_t k = 0; k < kNumKinds && !op.draft; ++k) {
      layer_launches_[k] += op.per_layer[k] * launches;
      in_layers += executions_[i][k];
    }
    other_launches_ += (op.count - in_layers) * launches;
  }
}

void StepPricer::set_free(const std::vector<OpId>& ops) {
  for (OpId id : ops) {
    kernels_.binding(id).cost = FusedLaw{};
    kernels_.binding(id).launches = 0.0;
    kernels_.prefill_bindings[static_cast<std::size_t>(id)].reset();
  }
  count_launches();
  id_ = next_pricer_id();  // costs kept so far no longer hold
}

void StepPricer::set_at_roofline() {
  at_roofline_ = true;
  id_ = next_pricer_id();
}

TokenCosts::Cost StepPricer::price_launch(const StepOp& op, const StepState& state) const {
  const Law& law = kernels_.binding(op.id, state.prefill).cost;
  const Launch launch = launch_at(graph_, op, state);
  const Floor floor = roofline_floor(tally(launch), device_);
  const double floor_seconds = floor.time.value();
  if (std::holds_alternative<FusedLaw>(law)) return {0.0, floor_seconds, floor.limiter};
  if (at_roofline_) return {floor_seconds, floor_seconds, floor.limiter};
  // A law may leave a limit out; no launch is faster than the roofline at datasheet peaks.
  const double seconds = std::max(law_seconds(law, launch, device_), floor_seconds);
  // Far above its roofline a launch is bound by something the roofline does not see.
  constexpr double kFarAbove = 3.0;
  const bool latency = seconds > kFarAbove * floor_seconds;
  return {seconds, floor_seconds, latency ? Limiter::kLatency : floor.limiter};
}

const std::vector<TokenCosts::Cost>* StepPricer::token_costs(const StepState& state,
                                                             TokenCosts& costs) const {
  constexpr double kMostRequests = 512.0;
  if (state.requests > kMostRequests || state.requests != std::floor(state.requests)) {
    return nullptr;
  }
  const TokenCosts::Key key{id_, state.tokens_per_request, state.logits_rows / state.requests,
                            state.prefill};
  if (!(costs.key_ == key)) {
    costs.key_ = key;
    costs.rows_.assign(static_cast<std::size_t>(kMostRequests) + 1, {});
  }
  std::vector<TokenCosts::Cost>& row = costs.rows_[static_cast<std::size_t>(state.requests)];
  if (row.empty()) {
    row.resize(graph_.ops.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!reads_context_[i]) row[i] = price_launch(graph_.ops[i], state);
    }
  }
  return &row;
}

void StepPricer::price(const StepState& state, StepPrice& price) const {
  price.ops.resize(graph_.ops.size());
  price.group_sigma_seconds.assign(static_cast<std::size_t>(num_kernel_groups_), 0.0);
  price.eager =
      state.prefill || !engine_.cuda_graph || state.tokens() > engine_.graph_capture_max_tokens;
  const std::vector<TokenCosts::Cost>* kept = token_costs(state, price.token_costs);
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const StepOp& op = graph_.ops[i];
    const TokenCosts::Cost cost =
        kept != nullptr && !reads_context_[i] ? (*kept)[i] : price_launch(op, state);
    PricedOp& priced = price.ops[i];
    priced.busy_seconds = op.count * cost.seconds;
    priced.seconds = priced.busy_seconds;
    priced.floor_seconds = op.count * cost.floor_seconds;
    priced.limiter = cost.limiter;
  }
  if (!price.eager && state.tokens() <= graph_.settings.traits.side_stream_max_tokens) {
    apply_overlap(price);
  }
  price.gpu_seconds = 0.0;
  for (std::size_t i = 0; i < price.ops.size(); ++i) {
    const KernelBinding& bound = kernels_.binding(graph_.ops[i].id, state.prefill);
    price.gpu_seconds += price.ops[i].seconds;
    price.group_sigma_seconds[static_cast<std::size_t>(kernel_group_[i])] +=
        price.ops[i].seconds * bound.log_sigma + graph_.ops[i].count * bound.sigma_seconds;
  }
  price.gap_seconds = kernels_.host.step_seconds + (price.eager ? host_gap_seconds(price) : 0.0);
  double variance = 0.0;
  for (double sigma : price.group_sigma_seconds) variance += sigma * sigma;
  price.log_sigma = price.total_seconds() > 0.0 ? std::sqrt(variance) / price.total_seconds() : 0.0;
}

// F10: branches of a segment run side by side. They end no sooner than the longest branch, and no
// sooner than their summed rooflines: they share one memory system. Leaves out contention for SMs.
void StepPricer::apply_overlap(StepPrice& price) const {
  for (const std::vector<std::size_t>& ops : branch_ops_) {
    std::array<std::array<double, kMaxBranches>, kNumKinds> branch{};
    std::array<double, kNumKinds> floor{};
    for (std::size_t i : ops) {
      const StepOp& op = graph_.ops[i];
      const double once = price.ops[i].busy_seconds / op.count;
      const double floor_once = price.ops[i].floor_seconds / op.count;
      for (std::size_t k = 0; k < kNumKinds; ++k) {
        branch[k][static_cast<std::size_t>(op.branch)] += once * op.per_layer[k];
        floor[k] += floor_once * op.per_layer[k];
      }
    }
    std::array<double, kNumKinds> factor{};
    for (std::size_t k = 0; k < kNumKinds; ++k) {
      const double sum = branch[k][0] + branch[k][1] + branch[k][2];
      const double longest = std::max({branch[k][0], branch[k][1], branch[k][2]});
      factor[k] = sum > 0.0 ? std::min(1.0, std::max(longest, floor[k]) / sum) : 1.0;
    }
    for (std::size_t i : ops) {
      const std::array<double, kNumKinds>& times = executions_[i];
      const double overlapped = times[0] * factor[0] + times[1] * factor[1] + times[2] * factor[2];
      price.ops[i].seconds = price.ops[i].busy_seconds / graph_.ops[i].count * overlapped;
    }
  }
}

// F11: eager launches. The host issues a layer's kernels in order; the GPU cannot end a layer
// before its last kernel was issued, nor before the work in front of it is done. Leaves out
// synchronisations inside a step.
double StepPricer::host_gap_seconds(const StepPrice& price) const {
  std::array<double, kNumKinds> layer_seconds{};
  double other_seconds = 0.0;
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const StepOp& op = graph_.ops[i];
    if (op.count == 0.0) continue;
    const double once = price.ops[i].seconds / op.count;
    double in_layers = 0.0;
    for (std::size_t k = 0; k < kNumKinds && !op.draft; ++k) {
      layer_seconds[k] += once * op.per_layer[k];
      in_layers += executions_[i][k];
    }
    other_seconds += once * (op.count - in_layers);
  }
  double host_seconds = 0.0;
  double gpu_end_seconds = 0.0;
  const double issue = kernels_.host.launch_seconds;
  for (LayerKind kind : graph_.model.layers) {
    const auto k = static_cast<std::size_t>(kind);
    host_seconds += issue * layer_launches_[k];
    gpu_end_seconds = std::max(gpu_end_seconds + layer_seconds[k], host_seconds);
  }
  host_seconds += issue * other_launches_;
  gpu_end_seconds = std::max(gpu_end_seconds + other_seconds, host_seconds);
  return std::max(0.0, gpu_end_seconds - price.gpu_seconds);
}

}  // namespace fulcrum
