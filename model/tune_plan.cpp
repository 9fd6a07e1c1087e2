#include "model/tune_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "model/predict.h"

namespace fulcrum {
namespace {

/// A pair below this is left alone: ten of them together just show in a benchmark.
constexpr double kWorthwhilePair = 1.002;

bool is_triton(const GemmCost& cost) {
  return cost.structure == &gemm_structure::kTritonBlockFp8 ||
         cost.structure == &gemm_structure::kTritonBlockFp8Tuned;
}

const GemmCost& triton_cost(const Deployment& deployment, const StepGraph& graph) {
  for (const StepOp& op : graph.ops) {
    if (slot_of(op.id) != "fp8_gemm") continue;
    const KernelBinding& binding = deployment.kernels.binding(op.id);
    const auto* cost = std::get_if<GemmCost>(&binding.cost);
    if (cost != nullptr && is_triton(*cost)) return *cost;
    throw std::invalid_argument("its FP8 GEMM is " + binding.kernel +
                                ", which has no Triton configuration to tune");
  }
  throw std::invalid_argument("its model has no block-FP8 GEMM");
}

/// One weight shape in the step of one concurrency.
struct ShapeInStep {
  GemmLaunch launch;
  double launches = 0.0;
  double now_seconds = 0.0;   ///< of one launch
  double step_seconds = 0.0;  ///< of all of them, overlap taken off
};

struct PricedConcurrency {
  std::map<std::pair<int, int>, ShapeInStep> shapes;
  double step_seconds = 0.0;
  double seconds_per_step = 0.0;  ///< served: the step with what prefill adds to it
};

PricedConcurrency price_concurrency(const Deployment& deployment, const StepPricer& pricer,
                                    double concurrency) {
  PricedConcurrency out;
  const Throughput served = closed_loop_throughput(deployment, concurrency);
  if (served.batch.requests < 1.0) return out;
  StepState state;
  state.requests = served.batch.requests;
  state.tokens_per_request = 1.0 + deployment.speculation.draft_tokens;
  state.context = deployment.workload.input_tokens + deployment.workload.output_tokens / 2.0;
  state.logits_rows = state.tokens();
  StepPrice price;
  pricer.price(state, price);
  out.step_seconds = price.total_seconds();
  out.seconds_per_step = served.tpot_seconds * served.accept_length;
  const StepGraph& graph = pricer.graph();
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const StepOp& op = graph.ops[i];
    if (slot_of(op.id) != "fp8_gemm" || op.count == 0.0) continue;
    const auto launch = std::get<GemmLaunch>(launch_at(graph, op, state));
    ShapeInStep& shape = out.shapes[{static_cast<int>(launch.n), static_cast<int>(launch.k)}];
    shape.launch = launch;
    shape.launches += op.count;
    shape.now_seconds = price.ops[i].busy_seconds / op.count;
    shape.step_seconds += price.ops[i].seconds;
  }
  return out;
}

/// Output-rate ratio when `saved` seconds of each served step go away.
double gain_of(const PricedConcurrency& at, double saved_seconds) {
  return at.seconds_per_step / (at.seconds_per_step - saved_seconds);
}

/// A tuner keeps what it has where nothing is faster, so no ratio passes 1.
Interval gain_interval(const PricedConcurrency& at, const ShapeInStep& shape, double ratio,
                       double log_sigma) {
  const Interval faster = log_normal_interval(ratio, std::sqrt(2.0) * log_sigma);
  const auto gain = [&](double r) {
    return gain_of(at, shape.step_seconds * (1.0 - std::min(1.0, r)));
  };
  return {gain(faster.p95), gain(faster.p50), gain(faster.p05)};
}

/// Candidates that can win, fastest first: within the law's own error of the best.
std::vector<RankedConfig> rank(const GemmCost& cost, const GemmLaunch& launch,
                               const Deployment& deployment, double log_sigma, double most) {
  const LawDevice device = deployment.law_device();
  std::vector<RankedConfig> ranked;
  for (const TritonConfig& config : tuner_candidates()) {
    if (why_hopeless(config, launch, deployment.hardware)) continue;
    ranked.push_back({config, triton_seconds(cost, config, launch, device)});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  if (ranked.empty()) return ranked;
  const double limit = ranked.front().seconds * std::exp(kNormalP95 * log_sigma);
  std::size_t kept = 0;
  while (kept < ranked.size() && ranked[kept].seconds <= limit &&
         static_cast<double>(kept) < most) {
    ++kept;
  }
  ranked.resize(std::max<std::size_t>(1, kept));
  return ranked;
}

Verdict verdict_of(const TunePair& pair) {
  if (pair.ceiling_ratio < kWorthwhilePair || pair.gain_ratio.p95 < kWorthwhilePair) {
    return Verdict::kSkip;
  }
  return pair.gain_ratio.p50 >= kWorthwhilePair ? Verdict::kDo : Verdict::kCannotTell;
}

}  // namespace

double tuned_seconds(const Deployment& tuned, const TritonConfig& config, double m, int n, int k) {
  const StepGraph graph = build_step_graph(tuned.model, tuned.graph_settings());
  const GemmCost& cost = triton_cost(tuned, graph);
  for (const StepOp& op : graph.ops) {
    if (slot_of(op.id) != "fp8_gemm") continue;
    auto launch = std::get<GemmLaunch>(op.shape);
    launch.m = m;
    launch.n = n;
    launch.k = k;
    return triton_seconds(cost, config, launch, tuned.law_device());
  }
  throw std::invalid_argument("its model has no block-FP8 GEMM");
}

TunePlan tune_plan(const Deployment& deployment, const Deployment& tuned,
                   const TuneOptions& options) {
  const StepPricer pricer(deployment);
  triton_cost(deployment, pricer.graph());
  const GemmCost& cost = triton_cost(tuned, pricer.graph());
  const KernelBinding* binding = nullptr;
  for (const StepOp& op : pricer.graph().ops) {
    if (slot_of(op.id) == "fp8_gemm") binding = &deployment.kernels.binding(op.id);
  }
  const std::vector<int> batch_sizes = tuner_batch_sizes();
  const auto num_candidates = static_cast<int>(tuner_candidates().size());
  const double minutes_per_candidate = options.candidate_gpu_seconds / 60.0 / options.num_gpus;

  TunePlan plan;
  plan.kernel = binding->kernel;
  std::set<std::pair<int, int>> shapes;
  bool first = true;
  for (double concurrency : deployment.workload.concurrency) {
    const PricedConcurrency at = price_concurrency(deployment, pricer, concurrency);
    Interval saved_all;
    double time_all = 0.0;
    for (const auto& [shape, in_step] : at.shapes) {
      shapes.insert(shape);
      TunePair pair;
      pair.n = shape.first;
      pair.k = shape.second;
      pair.m = nearest_batch_size(batch_sizes, in_step.launch.m);
      pair.concurrency = concurrency;
      pair.launches = in_step.launches;
      pair.now_seconds = in_step.now_seconds;
      pair.num_candidates = num_candidates;
      pair.candidates = rank(cost, in_step.launch, deployment, binding->log_sigma,
                             options.most_candidates_fraction * num_candidates);
      pair.best_seconds = std::min(in_step.now_seconds, pair.candidates.front().seconds);
      pair.share_fraction = in_step.step_seconds / at.step_seconds;
      const double ratio = pair.candidates.front().seconds / in_step.now_seconds;
      pair.gain_ratio = gain_interval(at, in_step, ratio, binding->log_sigma);
      pair.ceiling_ratio = gain_of(at, in_step.step_seconds);
      pair.full_minutes = num_candidates * minutes_per_candidate;
      pair.cut_minutes = static_cast<double>(pair.candidates.size()) * minutes_per_candidate;
      pair.verdict = verdict_of(pair);
      if (first) {
        const auto saved = [&](double gain) { return at.seconds_per_step * (1.0 - 1.0 / gain); };
        saved_all.p05 += saved(pair.gain_ratio.p05);
        saved_all.p50 += saved(pair.gain_ratio.p50);
        saved_all.p95 += saved(pair.gain_ratio.p95);
        time_all += in_step.step_seconds;
      }
      plan.pairs.push_back(std::move(pair));
    }
    if (first && !at.shapes.empty()) {
      // One kernel: its errors are common to all shapes, so their ends add up.
      plan.gain_all_ratio = {gain_of(at, saved_all.p05), gain_of(at, saved_all.p50),
                             gain_of(at, saved_all.p95)};
      plan.ceiling_all_ratio = gain_of(at, time_all);
      first = false;
    }
  }
  std::stable_sort(plan.pairs.begin(), plan.pairs.end(), [](const auto& a, const auto& b) {
    return a.gain_ratio.p50 > b.gain_ratio.p50;
  });
  plan.full_minutes = static_cast<double>(shapes.size() * batch_sizes.size()) * num_candidates *
                      minutes_per_candidate;
  std::set<std::tuple<int, int, int>> counted;  // one run serves every concurrency of that m
  for (const TunePair& pair : plan.pairs) {
    if (pair.verdict == Verdict::kDo && counted.insert({pair.n, pair.k, pair.m}).second) {
      plan.cut_minutes += pair.cut_minutes;
    }
  }
  return plan;
}

}  // namespace fulcrum
