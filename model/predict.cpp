#include "model/predict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "model/serving.h"
#include "model/simulate.h"
#include "model/speculation.h"

namespace fulcrum {
namespace {

/// One concurrency of one replica, priced. Kept from point to point for the storage and the costs
/// its step keeps.
struct PricedPoint {
  EffectiveBatch batch;
  StepPrice decode;
  double decode_seconds = 0.0;
  double prefill_seconds = 0.0;
  double prefill_log_sigma = 0.0;
  double accept_length = 1.0;
  LoopResult loop;
  /// Of throughput and TPOT: decode and prefill share kernels, so their errors add.
  double log_sigma = 0.0;
  double step_log_sigma = 0.0;
};

/// Replicas that have a request to serve.
double busy_replicas(const Deployment& deployment, double concurrency) {
  return std::min(deployment.replicas(), concurrency);
}

/// Seconds and log spread of one prompt's prefill, in chunks of the engine's size.
std::pair<double, double> prefill(const Deployment& deployment, const StepPricer& pricer,
                                  StepPrice& price) {
  const Workload& work = deployment.workload;
  double done = work.cached_prefix_tokens;
  double seconds = 0.0;
  double sigma_seconds = 0.0;
  while (done < work.input_tokens) {
    const double chunk =
        std::min<double>(deployment.engine.chunked_prefill_tokens, work.input_tokens - done);
    StepState state;
    state.tokens_per_request = chunk;
    state.context = done + chunk / 2.0;  // causal: a token sees what precedes it
    state.prefill = true;
    pricer.price(state, price);
    seconds += price.total_seconds();
    sigma_seconds += price.total_seconds() * price.log_sigma;
    done += chunk;
  }
  return {seconds, seconds > 0.0 ? sigma_seconds / seconds : 0.0};
}

/// Prices points of one deployment, whose workload may change between them.
class PointPricer {
 public:
  PointPricer(const Deployment& deployment, const CeilingOptions& ceiling)
      : pricer_(deployment), ledger_(memory_ledger(deployment)), ceiling_(ceiling) {
    pricer_.set_free(ceiling.free_ops);
    if (ceiling.at_roofline) pricer_.set_at_roofline();
  }
  const StepPricer& steps() const { return pricer_; }
  const MemoryLedger& ledger() const { return ledger_; }

  /// `deployment` is the constructor's but for its workload. The result holds until the next call.
  const PricedPoint& price(const Deployment& deployment, double concurrency);

 private:
  const std::pair<double, double>& prefill_of(const Deployment& deployment);
  double pass_seconds(double tokens, double context);
  double prefill_together(const Deployment& deployment, double prompts, bool mixed);
  LoopResult loop_of(const Deployment& deployment, double concurrency, double per_replica);

  StepPricer pricer_;
  MemoryLedger ledger_;
  CeilingOptions ceiling_;
  PricedPoint point_;
  StepPrice prefill_price_;
  std::unordered_map<double, std::pair<double, double>> prefills_;  ///< by input tokens
  std::map<std::pair<double, double>, double> passes_;              ///< by tokens and context
};

double PointPricer::pass_seconds(double tokens, double context) {
  const auto [it, is_new] = passes_.try_emplace({tokens, context}, 0.0);
  if (is_new) {
    StepState state;
    state.tokens_per_request = tokens;
    state.context = context;
    state.prefill = true;
    pricer_.price(state, prefill_price_);
    it->second = prefill_price_.total_seconds();
    constexpr std::size_t kMostKept = 65536;
    if (passes_.size() >= kMostKept) {
      const double seconds = it->second;
      passes_.clear();
      return seconds;
    }
  }
  return it->second;
}

/// Prompts back to back, in passes of up to one chunk. A mixed pass also decodes, and counts with
/// what it takes longer than the decode step it replaces.
double PointPricer::prefill_together(const Deployment& deployment, double prompts, bool mixed) {
  const Workload& work = deployment.workload;
  const double prompt = work.input_tokens - work.cached_prefix_tokens;
  double chunk = deployment.engine.chunked_prefill_tokens;
  if (!mixed && (prompts == 1.0 || prompt >= chunk)) return prompts * point_.prefill_seconds;
  double decoding = 0.0;
  double saved = 0.0;
  if (mixed) {
    decoding = point_.batch.requests * (1.0 + deployment.speculation.draft_tokens);
    chunk = std::max(1.0, chunk - decoding);
    saved = point_.decode_seconds;
    for (std::size_t i = 0; i < point_.decode.ops.size(); ++i) {
      const OpFamily family = pricer_.graph().ops[i].family;
      if (family == OpFamily::kAttention || family == OpFamily::kIndexer) {
        saved -= point_.decode.ops[i].seconds;
      }
    }
  }
  const double total = prompts * prompt;
  const double full = std::floor(total / chunk);
  const double rest = total - full * chunk;
  const double context = work.cached_prefix_tokens + prompt / 2.0;
  double seconds = 0.0;
  if (full > 0.0) seconds += full * (pass_seconds(chunk + decoding, context) - saved);
  if (rest > 0.0) seconds += pass_seconds(rest + decoding, context) - saved;
  return std::max(0.0, seconds);
}

LoopResult PointPricer::loop_of(const Deployment& deployment, double concurrency,
                                double per_replica) {
  const Workload& work = deployment.workload;
  const bool mixed = default_policy(deployment.engine.kind) == SchedulerPolicy::kMixed;
  LoopInput in;
  in.concurrency = per_replica;
  in.batch = point_.batch.requests;
  in.output_tokens = work.output_tokens;
  in.output_cv = work.lengths.cv;
  in.accept_length = point_.accept_length;
  if (!ceiling_.accept_all_drafts_free) {
    in.accept_variance = accepted_drafts_variance(deployment.speculation.acceptance);
  }
  in.step_seconds = point_.decode_seconds;
  const double prompt = work.input_tokens - work.cached_prefix_tokens;
  in.mixed = mixed;
  const double decoding = mixed ? in.batch * (1.0 + deployment.speculation.draft_tokens) : 0.0;
  in.prompts_per_pass =
      std::max(1.0, std::floor((deployment.engine.chunked_prefill_tokens - decoding) / prompt));
  if (const auto prompts = work.prompts_at(concurrency)) {
    in.prompts = *prompts / busy_replicas(deployment, concurrency);
    StepState half;
    half.requests = std::max(1.0, std::floor(in.batch / 2.0));
    half.tokens_per_request =
        ceiling_.accept_all_drafts_free ? 1.0 : 1.0 + deployment.speculation.draft_tokens;
    half.context = mean_decode_context(work.input_tokens, work.output_tokens, work.lengths.cv);
    half.logits_rows = half.tokens();
    pricer_.price(half, prefill_price_);
    in.drain_step_seconds =
        prefill_price_.gpu_seconds + (ceiling_.no_gap ? 0.0 : prefill_price_.gap_seconds);
  }
  in.prefill_seconds = [&](double prompts) { return prefill_together(deployment, prompts, mixed); };
  return closed_loop_in_its_regime(in);
}

const std::pair<double, double>& PointPricer::prefill_of(const Deployment& deployment) {
  const double input_tokens = deployment.workload.input_tokens;
  const auto known = prefills_.find(input_tokens);
  if (known != prefills_.end()) return known->second;
  constexpr std::size_t kMostKept = 65536;
  if (prefills_.size() >= kMostKept) prefills_.clear();
  return prefills_[input_tokens] = prefill(deployment, pricer_, prefill_price_);
}

const PricedPoint& PointPricer::price(const Deployment& deployment, double concurrency) {
  const Workload& work = deployment.workload;
  const int drafts = deployment.speculation.draft_tokens;
  PricedPoint& point = point_;
  const double per_replica = concurrency / busy_replicas(deployment, concurrency);
  const double context =
      mean_decode_context(work.input_tokens, work.output_tokens, work.lengths.cv);
  point.batch = effective_batch(deployment, ledger_, per_replica, context);
  if (point.batch.requests < 1.0) return point;
  point.accept_length = ceiling_.accept_all_drafts_free
                            ? 1.0 + drafts
                            : accept_length(deployment.speculation.acceptance);
  StepState state;
  state.requests = point.batch.requests;
  state.tokens_per_request = ceiling_.accept_all_drafts_free ? 1.0 : 1.0 + drafts;
  state.context = context;
  state.logits_rows = state.tokens();
  pricer_.price(state, point.decode);
  const double gap = ceiling_.no_gap ? 0.0 : point.decode.gap_seconds;
  point.decode_seconds = point.decode.gpu_seconds + gap;
  std::tie(point.prefill_seconds, point.prefill_log_sigma) = prefill_of(deployment);

  point.loop = loop_of(deployment, concurrency, per_replica);
  const double decode_part = decode_steps(work.output_tokens, point.accept_length) *
                             point.decode_seconds / point.batch.requests;
  const double prompt_part = point.loop.prompt_seconds;
  point.log_sigma = (decode_part * point.decode.log_sigma + prompt_part * point.prefill_log_sigma) /
                    (decode_part + prompt_part);
  const double system = deployment.kernels.host.system_log_sigma;
  const double acceptance = accept_length_log_sigma(
      deployment.speculation.acceptance, deployment.speculation.acceptance_standard_error);
  point.log_sigma = std::hypot(point.log_sigma, system, acceptance);
  point.step_log_sigma = std::hypot(point.decode.log_sigma, system);
  return point;
}

std::vector<BreakdownLine> breakdown_of(const StepPricer& pricer, const StepPrice& price) {
  std::vector<BreakdownLine> lines;
  const double total = price.total_seconds();
  for (std::size_t i = 0; i < price.ops.size(); ++i) {
    const StepOp& op = pricer.graph().ops[i];
    const PricedOp& priced = price.ops[i];
    const KernelBinding& bound = pricer.binding(op);
    if (bound.law == "fused") continue;
    BreakdownLine line;
    line.op = (op.draft ? "draft." : "") + std::string(name_of(op.id));
    line.family = op.family;
    line.kernel = bound.kernel;
    line.count = op.count;
    line.seconds = priced.seconds;
    // Its part of the floor: what overlaps hides the floor as it hides the time.
    line.floor_seconds = priced.busy_seconds > 0.0
                             ? priced.floor_seconds * priced.seconds / priced.busy_seconds
                             : priced.floor_seconds;
    line.limiter = priced.limiter;
    line.basis = bound.basis;
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const BreakdownLine& l) { return l.op == line.op; });
    if (same != lines.end()) {
      same->count += line.count;
      same->seconds += line.seconds;
      same->floor_seconds += line.floor_seconds;
    } else {
      lines.push_back(std::move(line));
    }
  }
  BreakdownLine gap;
  gap.op = "gap";
  gap.kernel = price.eager ? "host launches (eager)" : "host, between steps";
  gap.count = 1.0;
  gap.seconds = price.gap_seconds;
  lines.push_back(std::move(gap));
  for (BreakdownLine& line : lines) line.share_fraction = line.seconds / total;
  return lines;
}

void warn_about(const Deployment& deployment, const StepPricer& pricer, const PricedPoint& point,
                double concurrency, std::vector<std::string>& warnings) {
  const auto at = [&] {
    return " at concurrency " + std::to_string(static_cast<long long>(concurrency));
  };
  if (point.batch.requests < 1.0) {
    warnings.push_back("the weights leave no room for one request" + at() +
                       ": no throughput is predicted");
    return;
  }
  if (point.decode.eager && deployment.engine.cuda_graph) {
    warnings.push_back("the step runs eager" + at() +
                       ": its tokens exceed the captured graph sizes");
  }
  double assumed = 0.0;
  for (std::size_t i = 0; i < point.decode.ops.size(); ++i) {
    const StepOp& op = pricer.graph().ops[i];
    if (pricer.binding(op).basis == Basis::kAssumed) assumed += point.decode.ops[i].seconds;
  }
  const int percent = static_cast<int>(std::lround(100.0 * assumed / point.decode.total_seconds()));
  constexpr int kWorthSaying = 10;
  if (percent >= kWorthSaying) {
    warnings.push_back(std::to_string(percent) + " % of the step" + at() +
                       " rests on assumed kernel costs");
  }
}

}  // namespace

Prediction predict(const Deployment& deployment) {
  PointPricer pricer(deployment, {});
  Prediction prediction;
  prediction.scenario = deployment.name;
  for (double concurrency : deployment.workload.concurrency) {
    const PricedPoint& priced = pricer.price(deployment, concurrency);
    warn_about(deployment, pricer.steps(), priced, concurrency, prediction.warnings);
    PredictionPoint point;
    point.concurrency = concurrency;
    point.effective_batch = priced.batch.requests * busy_replicas(deployment, concurrency);
    point.batch_limiter = priced.batch.limiter;
    point.memory = pricer.ledger();
    if (priced.batch.requests >= 1.0) {
      point.accept_length = priced.accept_length;
      point.step_seconds = log_normal_interval(priced.decode_seconds, priced.step_log_sigma);
      point.tpot_seconds = log_normal_interval(priced.loop.steady.tpot_seconds, priced.log_sigma);
      point.ttft_seconds = log_normal_interval(priced.loop.steady.ttft_seconds, priced.log_sigma);
      point.output_tokens_per_second = log_normal_interval(
          priced.loop.output_tokens_per_second() * busy_replicas(deployment, concurrency),
          priced.log_sigma);
      if (priced.loop.steady.tpot_seconds > 0.0) {
        point.output_tokens_per_second_per_user =
            log_normal_interval(1.0 / priced.loop.steady.tpot_seconds, priced.log_sigma);
      }
      point.prefill_seconds = priced.prefill_seconds;
      point.regime = priced.loop.regime;
      point.prompts_together = priced.loop.prompts_together;
      point.run_efficiency = priced.loop.run_efficiency;
      point.eager = priced.decode.eager;
      point.breakdown = breakdown_of(pricer.steps(), priced.decode);
    }
    prediction.points.push_back(std::move(point));
  }
  return prediction;
}

struct ThroughputPricer::State {
  State(const Deployment& deployed, const CeilingOptions& ceiling)
      : deployment(deployed), points(deployed, ceiling) {}
  Deployment deployment;
  PointPricer points;
};

ThroughputPricer::ThroughputPricer(const Deployment& deployment, const CeilingOptions& ceiling)
    : state_(std::make_unique<State>(deployment, ceiling)) {}
ThroughputPricer::~ThroughputPricer() = default;
ThroughputPricer::ThroughputPricer(ThroughputPricer&&) noexcept = default;
ThroughputPricer& ThroughputPricer::operator=(ThroughputPricer&&) noexcept = default;

Throughput ThroughputPricer::at(double concurrency, double input_tokens, double output_tokens) {
  state_->deployment.workload.input_tokens = input_tokens;
  state_->deployment.workload.output_tokens = output_tokens;
  return at(concurrency);
}

Throughput ThroughputPricer::at(double concurrency) {
  const Deployment& deployment = state_->deployment;
  const PricedPoint& point = state_->points.price(deployment, concurrency);
  Throughput out;
  out.batch = point.batch;
  if (point.batch.requests < 1.0) return out;
  out.output_tokens_per_second =
      point.loop.output_tokens_per_second() * busy_replicas(deployment, concurrency);
  out.tpot_seconds = point.loop.steady.tpot_seconds;
  out.ttft_seconds = point.loop.steady.ttft_seconds;
  out.step_seconds = point.decode_seconds;
  out.prefill_seconds = point.prefill_seconds;
  out.prompt_seconds = point.loop.prompt_seconds;
  out.run_efficiency = point.loop.run_efficiency;
  out.regime = point.loop.regime;
  out.accept_length = point.accept_length;
  out.log_sigma = point.log_sigma;
  out.step_log_sigma = point.step_log_sigma;
  return out;
}

Throughput closed_loop_throughput(const Deployment& deployment, double concurrency,
                                  const CeilingOptions& ceiling) {
  return ThroughputPricer(deployment, ceiling).at(concurrency);
}

}  // namespace fulcrum
