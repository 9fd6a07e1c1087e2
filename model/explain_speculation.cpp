#include "model/explain_speculation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/acceptance.h"
#include "model/attribution.h"
#include "model/levers.h"
#include "model/predict.h"
#include "model/price.h"
#include "model/serving.h"
#include "model/speculation.h"

namespace fulcrum {
namespace {

constexpr int kNumFamilies = static_cast<int>(OpFamily::kGap) + 1;

/// Seconds of one step by family; drafts and the gap are families of their own.
using FamilySeconds = std::array<double, kNumFamilies>;

FamilySeconds family_seconds(const StepPricer& pricer, const StepPrice& price) {
  FamilySeconds seconds{};
  for (std::size_t i = 0; i < price.ops.size(); ++i) {
    seconds[static_cast<std::size_t>(pricer.graph().ops[i].family)] += price.ops[i].seconds;
  }
  seconds[static_cast<std::size_t>(OpFamily::kGap)] += price.gap_seconds;
  return seconds;
}

FamilySeconds step_at(const StepPricer& pricer, const Deployment& deployment, double requests,
                      bool* eager) {
  const Workload& work = deployment.workload;
  StepState state;
  state.requests = requests;
  state.tokens_per_request = 1.0 + deployment.speculation.draft_tokens;
  state.context = mean_decode_context(work.input_tokens, work.output_tokens, work.lengths.cv);
  state.logits_rows = state.tokens();
  StepPrice price;
  pricer.price(state, price);
  if (eager != nullptr) *eager = price.eager;
  return family_seconds(pricer, price);
}

/// The causes, in the order of their bits: accepted tokens, one per family, batch, prefill.
enum : int { kAccepted = 0, kFamilies = 1, kBatch = kFamilies + kNumFamilies, kServing };
constexpr int kNumCauses = kServing + 1;

std::string cause_name(int cause) {
  if (cause == kAccepted) return "accepted_tokens";
  if (cause == kBatch) return "effective_batch";
  if (cause == kServing) return "prefill_and_last_step";
  const auto family = static_cast<OpFamily>(cause - kFamilies);
  if (family == OpFamily::kDraft) return "draft";
  if (family == OpFamily::kGap) return "graph_coverage_and_gaps";
  return "verify_" + std::string(name_of(family));
}

/// Both arms priced at both batches.
struct Arms {
  std::array<std::array<FamilySeconds, 2>, 2> step;  ///< [batch of arm][tokens of arm]
  std::array<Throughput, 2> arm;
  double output_tokens = 0.0;

  bool has(std::uint32_t mask, int cause) const { return (mask >> cause & 1u) != 0; }

  double log_throughput(std::uint32_t mask) const {
    const std::size_t b = has(mask, kBatch) ? 1 : 0;
    double step_seconds = 0.0;
    for (int f = 0; f < kNumFamilies; ++f) {
      const std::size_t tokens = has(mask, kFamilies + f) ? 1 : 0;
      step_seconds += step[b][tokens][static_cast<std::size_t>(f)];
    }
    const double accept = has(mask, kAccepted) ? arm[1].accept_length : 1.0;
    double steps = std::max(0.0, output_tokens - 1.0) / accept;
    const std::size_t serving = has(mask, kServing) ? 1 : 0;
    if (serving == 1) {
      steps += decode_steps(output_tokens, arm[1].accept_length) -
               (output_tokens - 1.0) / arm[1].accept_length;
    }
    const double seconds =
        arm[serving].prompt_seconds + steps * step_seconds / arm[b].batch.requests;
    return std::log(arm[serving].run_efficiency / seconds);
  }
};

/// The last fall through 1: small batches that fill tiles badly may dip and recover before.
std::optional<double> crossing(const std::vector<SpeculationPoint>& points, double Interval::*end) {
  for (std::size_t i = points.size(); i-- > 1;) {
    const double left = points[i - 1].gain_ratio.*end;
    const double right = points[i].gain_ratio.*end;
    if (right > 1.0) return std::nullopt;
    if (left > 1.0) {
      const double t = (left - 1.0) / (left - right);
      return std::exp(std::log(points[i - 1].concurrency) * (1.0 - t) +
                      std::log(points[i].concurrency) * t);
    }
  }
  return std::nullopt;
}

}  // namespace

Deployment without_speculation(const Deployment& deployment) {
  Deployment plain = deployment;
  plain.speculation = Speculation{};
  return plain;
}

SpeculationPoint explain_speculation(const Deployment& without, const Deployment& with,
                                     double concurrency) {
  SpeculationPoint point;
  point.concurrency = concurrency;
  point.gain_ratio = evaluate_lever(Lever{}, without, with, concurrency).gain_ratio;
  Arms arms;
  arms.arm = {closed_loop_throughput(without, concurrency),
              closed_loop_throughput(with, concurrency)};
  arms.output_tokens = with.workload.output_tokens;
  point.batch_without = arms.arm[0].batch;
  point.batch_with = arms.arm[1].batch;
  point.accept_length = arms.arm[1].accept_length;
  point.comparable = point.batch_without.requests == point.batch_with.requests;
  if (point.batch_without.requests < 1.0 || point.batch_with.requests < 1.0) return point;
  const StepPricer pricer_without(without);
  const StepPricer pricer_with(with);
  for (std::size_t b = 0; b < 2; ++b) {
    const double requests = arms.arm[b].batch.requests;
    arms.step[b][0] =
        step_at(pricer_without, without, requests, b == 0 ? &point.eager_without : nullptr);
    arms.step[b][1] = step_at(pricer_with, with, requests, b == 1 ? &point.eager_with : nullptr);
  }
  const auto value = [&](std::uint32_t mask) { return arms.log_throughput(mask); };
  const std::vector<double> parts = shapley_values(kNumCauses, value);
  const std::uint32_t all = (1u << kNumCauses) - 1u;
  for (int c = 0; c < kNumCauses; ++c) {
    const double part = parts[static_cast<std::size_t>(c)];
    if (part == 0.0) continue;
    point.causes.push_back(
        {cause_name(c), std::exp(part), std::exp(value(all & ~(1u << c)) - value(0))});
  }
  std::stable_sort(point.causes.begin(), point.causes.end(), [](const auto& a, const auto& b) {
    return std::abs(std::log(a.factor)) > std::abs(std::log(b.factor));
  });
  return point;
}

Crossover crossover(const std::vector<SpeculationPoint>& points) {
  const auto status = [&](double Interval::*end, const std::optional<double>& at) {
    if (at) return Crossover::Status::kStopsPaying;
    const bool pays = !points.empty() && points.back().gain_ratio.*end > 1.0;
    return pays ? Crossover::Status::kNeverStops : Crossover::Status::kNeverPays;
  };
  Crossover cross;
  cross.p05 = crossing(points, &Interval::p05);
  cross.p50 = crossing(points, &Interval::p50);
  cross.p95 = crossing(points, &Interval::p95);
  cross.p05_status = status(&Interval::p05, cross.p05);
  cross.p50_status = status(&Interval::p50, cross.p50);
  cross.p95_status = status(&Interval::p95, cross.p95);
  return cross;
}

std::string_view name_of(Crossover::Status status) {
  constexpr std::string_view kNames[] = {"stops_paying", "never_stops", "never_pays"};
  return kNames[static_cast<int>(status)];
}

std::vector<GainDip> gain_dips(const std::vector<SpeculationPoint>& points) {
  constexpr double kWorthSaying = 0.99;
  const auto factor = [](const SpeculationPoint& point, const std::string& name) {
    for (const GainCause& cause : point.causes) {
      if (cause.name == name) return cause.factor;
    }
    return 1.0;
  };
  std::vector<GainDip> dips;
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    const double gain = points[i].gain_ratio.p50;
    const double around = std::min(points[i - 1].gain_ratio.p50, points[i + 1].gain_ratio.p50);
    if (gain > kWorthSaying * around) continue;
    GainDip dip{points[i].concurrency, gain, "", 1.0};
    for (const GainCause& cause : points[i].causes) {
      const double neighbours =
          std::sqrt(factor(points[i - 1], cause.name) * factor(points[i + 1], cause.name));
      if (cause.factor / neighbours < dip.cause_ratio) {
        dip.cause = cause.name;
        dip.cause_ratio = cause.factor / neighbours;
      }
    }
    dips.push_back(std::move(dip));
  }
  return dips;
}

const DraftChoice& best_of(const std::vector<DraftChoice>& ladder) {
  return *std::max_element(ladder.begin(), ladder.end(), [](const auto& a, const auto& b) {
    return a.output_tokens_per_second < b.output_tokens_per_second;
  });
}

std::vector<DraftChoice> draft_ladder(const Deployment& deployment, double concurrency,
                                      int max_draft_tokens) {
  std::vector<DraftChoice> ladder;
  for (int k = 0; k <= max_draft_tokens; ++k) {
    Deployment candidate = deployment;
    candidate.speculation.draft_tokens = k;
    candidate.speculation.acceptance = acceptance_for(deployment.speculation.acceptance, k);
    const Throughput throughput = closed_loop_throughput(candidate, concurrency);
    DraftChoice choice{k, throughput.accept_length, throughput.output_tokens_per_second, 1.0};
    if (k > 0 && ladder.back().output_tokens_per_second > 0.0) {
      choice.marginal_gain_ratio =
          choice.output_tokens_per_second / ladder.back().output_tokens_per_second;
    }
    ladder.push_back(choice);
  }
  return ladder;
}

}  // namespace fulcrum
