#include "model/simulate.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "model/random.h"
#include "model/serving_pool.h"
#include "model/step_costs.h"

namespace fulcrum {
namespace {

struct Request {
  double arrival = 0.0;
  double first_token = -1.0;
  double last_emission = 0.0;
  double output = 0.0;
  double to_prefill = 0.0;  ///< tokens still to compute before it decodes
  double context = 0.0;     ///< tokens in the cache
  double generated = 0.0;
};

class Simulator {
 public:
  Simulator(const Deployment& deployment, const Traffic& traffic, const SimulationOptions& options)
      : traffic_(traffic),
        options_(options),
        costs_(deployment),
        pool_(serving_pool(deployment)),
        chunk_tokens_(deployment.engine.chunked_prefill_tokens),
        cached_prefix_tokens_(deployment.workload.cached_prefix_tokens),
        acceptance_(deployment.speculation.acceptance),
        arrivals_(options.seed),
        lengths_(options.seed ^ 0x5851f42d4c957f2du),
        drafts_(options.seed ^ 0x14057b7ef767814fu) {}

  SimulationResult run() {
    if (traffic_.kind == Traffic::Kind::kClosedLoop) {
      while (in_system() < traffic_.concurrency && result_.offered < total()) submit_now();
    }
    for (;;) {
      take_arrivals();
      if (in_system() == 0.0) {
        if (next_arrival_seconds() == kNever) break;
        advance(next_arrival_seconds() - now_);
        continue;
      }
      admit();
      if (options_.policy == SchedulerPolicy::kMixed) {
        mixed_step();
      } else if (!prefilling_.empty()) {
        prefill_step();
      } else {
        decode_step();
      }
    }
    finish();
    return std::move(result_);
  }

 private:
  static constexpr double kNever = 1e300;

  std::int64_t total() const {
    return traffic_.kind == Traffic::Kind::kTrace ? static_cast<std::int64_t>(traffic_.trace.size())
                                                  : traffic_.num_requests;
  }
  double in_system() const {
    return static_cast<double>(waiting_.size() + running_.size() + prefilling_.size());
  }
  void advance(double seconds) {
    area_ += in_system() * seconds;
    now_ += seconds;
  }

  double draw_length(double mean) {
    if (traffic_.lengths.kind == LengthSpread::Kind::kFixed) return std::max(1.0, std::round(mean));
    const double u = lengths_.uniform();
    const bool second = traffic_.lengths.kind == LengthSpread::Kind::kLogNormal;
    const double v = second ? lengths_.uniform() : 0.0;
    return std::max(1.0, std::round(mean * traffic_.lengths.factor(u, v)));
  }

  void submit_now() {
    const double input = draw_length(traffic_.input_tokens);
    enqueue({now_, input, draw_length(traffic_.output_tokens)});
  }

  void enqueue(const TraceRequest& arrived) {
    ++result_.offered;
    Request request;
    request.arrival = arrived.arrival_seconds;
    request.output = std::max(1.0, arrived.output_tokens);
    request.context = std::clamp(cached_prefix_tokens_, 0.0, arrived.input_tokens - 1.0);
    request.to_prefill = arrived.input_tokens - request.context;
    const double most = arrived.input_tokens + request.output;
    if (pool_.max_running < 1.0 || pool_.pages(most) > pool_.capacity_tokens) {
      ++result_.rejected;
      return;
    }
    area_ += now_ - request.arrival;  // it came while a step ran
    waiting_.push_back(request);
  }

  double next_arrival_seconds() {
    if (traffic_.kind == Traffic::Kind::kClosedLoop || result_.offered >= total()) return kNever;
    if (traffic_.kind == Traffic::Kind::kTrace) {
      return traffic_.trace[static_cast<std::size_t>(result_.offered)].arrival_seconds;
    }
    if (next_poisson_ < 0.0) {
      last_poisson_ += arrivals_.exponential(traffic_.requests_per_second);
      next_poisson_ = last_poisson_;
    }
    return next_poisson_;
  }

  void take_arrivals() {
    while (next_arrival_seconds() <= now_) {
      if (traffic_.kind == Traffic::Kind::kTrace) {
        enqueue(traffic_.trace[static_cast<std::size_t>(result_.offered)]);
      } else {
        const double input = draw_length(traffic_.input_tokens);
        enqueue({next_poisson_, input, draw_length(traffic_.output_tokens)});
        next_poisson_ = -1.0;
      }
    }
  }

  double used_tokens() const {
    double used = 0.0;
    for (const Request& r : running_) used += pool_.pages(r.context);
    for (const Request& r : prefilling_) used += pool_.pages(r.context + r.to_prefill);
    return used;
  }

  /// Moves waiting requests to prefill while slots and the pool allow, first come first served.
  void admit() {
    if (waiting_.empty()) return;
    const auto promised = [&](const Request& r) {
      return options_.reserved_output_fraction * (r.output - r.generated);
    };
    double committed = used_tokens();
    for (const Request& r : running_) committed += promised(r);
    for (const Request& r : prefilling_) committed += promised(r);
    while (!waiting_.empty() &&
           static_cast<double>(running_.size() + prefilling_.size()) < pool_.max_running) {
      const Request& next = waiting_.front();
      const double wanted = pool_.pages(next.context + next.to_prefill) + promised(next);
      const bool idle = running_.empty() && prefilling_.empty();
      if (committed + wanted > pool_.capacity_tokens && !idle) break;
      committed += wanted;
      prefilling_.push_back(next);
      waiting_.pop_front();
    }
  }

  /// Fills up to `budget` prompt tokens first come first served; adds their number to `tokens` and
  /// their mean context to `context`. Returns how many requests ended their prompt.
  std::size_t take_chunk(double budget, double& tokens, double& context) {
    std::size_t done = 0;
    double weighted = 0.0;
    for (Request& r : prefilling_) {
      if (tokens >= budget) break;
      const double part = std::min(budget - tokens, r.to_prefill);
      weighted += part * (r.context + part / 2.0);
      r.context += part;
      r.to_prefill -= part;
      tokens += part;
      if (r.to_prefill > 0.0) break;
      ++done;
    }
    context = tokens > 0.0 ? weighted / tokens : 0.0;
    return done;
  }

  /// The first `done` prompts yield their first token and decode from the next step on.
  void promote(std::size_t done) {
    for (; done > 0; --done) {
      Request r = prefilling_.front();
      prefilling_.pop_front();
      if (r.first_token < 0.0) {
        r.first_token = now_;
        result_.ttft.add(now_ - r.arrival);
      }
      r.generated += 1.0;
      r.last_emission = now_;
      if (r.generated >= r.output) {
        complete(r);
      } else {
        running_.push_back(r);
      }
    }
  }

  void prefill_step() {
    double tokens = 0.0;
    double context = 0.0;
    const std::size_t done = take_chunk(chunk_tokens_, tokens, context);
    advance(costs_.prefill_seconds(tokens, context));
    ++result_.prefill_steps;
    promote(done);
    note_pool();
  }

  double mean_context() const {
    double sum = 0.0;
    for (const Request& r : running_) sum += r.context;
    return sum / static_cast<double>(running_.size());
  }

  /// Throws out the youngest until the step's tokens fit; they start over with what they have.
  void retract() {
    const double step_tokens = 1.0 + static_cast<double>(acceptance_.size());
    double used = 0.0;
    for (const Request& r : running_) used += pool_.pages(r.context + step_tokens);
    for (const Request& r : prefilling_) used += pool_.pages(r.context + r.to_prefill);
    while (used > pool_.capacity_tokens && running_.size() > 1) {
      Request r = running_.back();
      running_.pop_back();
      used -= pool_.pages(r.context + step_tokens);
      r.to_prefill = r.context;
      r.context = 0.0;
      waiting_.push_front(r);
      ++result_.retractions;
    }
  }

  void decode_step() {
    retract();
    advance(costs_.decode_seconds(static_cast<int>(running_.size()), mean_context()));
    emit(running_.size());
  }

  void mixed_step() {
    retract();
    const std::size_t decoding = running_.size();
    const double drafted = 1.0 + static_cast<double>(acceptance_.size());
    double tokens = 0.0;
    double context = 0.0;
    const double budget = std::max(1.0, chunk_tokens_ - static_cast<double>(decoding) * drafted);
    const std::size_t done = prefilling_.empty() ? 0 : take_chunk(budget, tokens, context);
    const double decode_context = decoding > 0 ? mean_context() : 0.0;
    if (tokens > 0.0) {
      advance(costs_.mixed_seconds(tokens, context, static_cast<int>(decoding), decode_context));
      ++result_.prefill_steps;
    } else {
      advance(costs_.decode_seconds(static_cast<int>(decoding), decode_context));
    }
    if (decoding > 0) emit(decoding);
    promote(done);
  }

  double accepted_tokens() {
    double tokens = 1.0;
    for (double a : acceptance_) {
      if (drafts_.uniform() >= a) break;
      tokens += 1.0;
    }
    return tokens;
  }

  /// The first `decoding` running requests gain the tokens of one step.
  void emit(std::size_t decoding) {
    ++result_.decode_steps;
    batch_sum_ += static_cast<double>(decoding);
    std::size_t kept = 0;
    finished_.clear();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Request& r = running_[i];
      if (i < decoding) {
        const double tokens =
            acceptance_.empty() ? 1.0 : std::min(accepted_tokens(), r.output - r.generated);
        r.generated += tokens;
        r.context += tokens;
        result_.itl.add(now_ - r.last_emission);
        r.last_emission = now_;
        if (r.generated >= r.output) {
          finished_.push_back(r);
          continue;
        }
      }
      if (kept != i) running_[kept] = r;
      ++kept;
    }
    running_.resize(kept);
    note_pool();
    for (const Request& r : finished_) complete(r);
  }

  void note_pool() {
    constexpr std::int64_t kEvery = 16;  // a peak over thousands of steps needs no more
    if ((result_.decode_steps + result_.prefill_steps) % kEvery != 0) return;
    const double used = used_tokens() / pool_.capacity_tokens;
    result_.pool_peak_fraction = std::max(result_.pool_peak_fraction, used);
  }

  void complete(const Request& r) {
    ++result_.completed;
    result_.output_tokens += r.output;
    const double end_to_end = now_ - r.arrival;
    end_to_end_sum_ += end_to_end;
    result_.end_to_end.add(end_to_end);
    if (r.output > 1.0) {
      result_.tpot.add((now_ - r.first_token) / (r.output - 1.0));
      decode_time_ += now_ - r.first_token;
      decode_tokens_ += r.output - 1.0;
    }
    note_steady();
    if (traffic_.kind == Traffic::Kind::kClosedLoop && result_.offered < total()) submit_now();
  }

  /// The steady window runs from a quarter of the requests to the last that had a full house
  /// behind it, in whole rounds of `concurrency` completions.
  void note_steady() {
    if (traffic_.kind != Traffic::Kind::kClosedLoop) return;
    const auto round = static_cast<std::int64_t>(traffic_.concurrency);
    const std::int64_t rounds = total() / round;
    const std::int64_t from = std::max<std::int64_t>(1, rounds / 4) * round;
    const std::int64_t to = (rounds - 1) * round;
    if (to <= from) return;
    if (result_.completed == from) {
      steady_start_seconds_ = now_;
      steady_start_tokens_ = result_.output_tokens;
    } else if (result_.completed == to) {
      result_.steady_output_tokens_per_second =
          (result_.output_tokens - steady_start_tokens_) / (now_ - steady_start_seconds_);
    }
  }

  void finish() {
    result_.makespan_seconds = now_;
    if (now_ > 0.0) {
      result_.output_tokens_per_second = result_.output_tokens / now_;
      result_.requests_per_second = static_cast<double>(result_.completed) / now_;
      result_.mean_in_system = area_ / now_;
    }
    if (result_.decode_steps > 0) {
      result_.mean_batch = batch_sum_ / static_cast<double>(result_.decode_steps);
    }
    if (result_.completed > 0) {
      result_.mean_end_to_end_seconds = end_to_end_sum_ / static_cast<double>(result_.completed);
    }
    if (decode_tokens_ > 0.0) result_.tpot_by_tokens_seconds = decode_time_ / decode_tokens_;
  }

  const Traffic traffic_;
  const SimulationOptions options_;
  StepCosts costs_;
  const ServingPool pool_;
  const double chunk_tokens_;
  const double cached_prefix_tokens_;
  const std::vector<double> acceptance_;
  Random arrivals_;
  Random lengths_;
  Random drafts_;

  double now_ = 0.0;
  double last_poisson_ = 0.0;
  double next_poisson_ = -1.0;
  std::deque<Request> waiting_;
  std::deque<Request> prefilling_;
  std::vector<Request> running_;
  std::vector<Request> finished_;
  double area_ = 0.0;
  double batch_sum_ = 0.0;
  double end_to_end_sum_ = 0.0;
  double decode_time_ = 0.0;
  double decode_tokens_ = 0.0;
  double steady_start_seconds_ = 0.0;
  double steady_start_tokens_ = 0.0;
  SimulationResult result_;
};

}  // namespace

SimulationResult simulate(const Deployment& deployment, const Traffic& traffic,
                          const SimulationOptions& options) {
  return Simulator(deployment, traffic, options).run();
}

SchedulerPolicy default_policy(EngineKind engine) {
  return engine == EngineKind::kVllm ? SchedulerPolicy::kMixed : SchedulerPolicy::kPrefillFirst;
}

}  // namespace fulcrum
