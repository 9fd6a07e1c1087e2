#include "model/levers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/speculation.h"

namespace fulcrum {
namespace {

/// Below this ceiling nobody can see the lever in a benchmark of a few repeats.
constexpr double kWorthwhile = 1.02;

bool same_cost(const KernelBinding& a, const KernelBinding& b) {
  return a.kernel == b.kernel && a.law == b.law && a.source == b.source;
}

/// One kernel's part of an arm's step.
struct KernelShare {
  const KernelBinding* binding = nullptr;
  double share = 0.0;
};

struct Arm {
  double tokens_per_request = 1.0;
  std::vector<KernelShare> shares;
};

Arm price_arm(const Deployment& deployment, double concurrency) {
  Arm arm;
  arm.tokens_per_request = 1.0 + deployment.speculation.draft_tokens;
  const StepPricer pricer(deployment);
  StepState state;
  state.requests = std::max(1.0, closed_loop_throughput(deployment, concurrency).batch.requests);
  state.tokens_per_request = arm.tokens_per_request;
  const Workload& work = deployment.workload;
  state.context = mean_decode_context(work.input_tokens, work.output_tokens, work.lengths.cv);
  state.logits_rows = state.tokens();
  StepPrice price;
  pricer.price(state, price);
  for (std::size_t i = 0; i < price.ops.size(); ++i) {
    const KernelBinding* bound = &deployment.kernels.binding(pricer.graph().ops[i].id);
    const auto same = std::find_if(arm.shares.begin(), arm.shares.end(), [&](const KernelShare& s) {
      return same_cost(*s.binding, *bound);
    });
    const double share = price.ops[i].seconds / price.total_seconds();
    if (same != arm.shares.end()) {
      same->share += share;
    } else {
      arm.shares.push_back({bound, share});
    }
  }
  return arm;
}

double share_of(const Arm& arm, const KernelBinding& binding) {
  for (const KernelShare& s : arm.shares) {
    if (same_cost(*s.binding, binding)) return s.share;
  }
  return 0.0;
}

double squared(double x) { return x * x; }

/// Variance of log(throughput after / before), F15. A kernel in both arms errs alike in both, so
/// only the change of its share counts; one that is in a single arm, or runs at another number of
/// tokens per request, counts in full. Leaves out errors in prefill.
double paired_log_variance(const Deployment& before, const Deployment& after, double concurrency) {
  const Arm a = price_arm(before, concurrency);
  const Arm b = price_arm(after, concurrency);
  const bool same_tokens = a.tokens_per_request == b.tokens_per_request;
  double variance = 0.0;
  for (const KernelShare& s : a.shares) {
    const double other = share_of(b, *s.binding);
    const double sigma = s.binding->log_sigma;
    variance += same_tokens ? squared(sigma * (s.share - other))
                            : squared(sigma * s.share) + squared(sigma * other);
  }
  for (const KernelShare& s : b.shares) {
    if (share_of(a, *s.binding) == 0.0) variance += squared(s.binding->log_sigma * s.share);
  }
  const Speculation& spec = after.speculation;
  if (spec.acceptance != before.speculation.acceptance) {
    variance += squared(accept_length_log_sigma(spec.acceptance, spec.acceptance_standard_error)) +
                squared(accept_length_log_sigma(before.speculation.acceptance,
                                                before.speculation.acceptance_standard_error));
  }
  return variance;
}

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100.0 * (ratio - 1.0));
  return text;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"do", "skip", "cannot_tell"};
  return kNames[static_cast<int>(verdict)];
}

double repeats_to_see(double relative_effect) {
  constexpr double kZ = 2.8;  // 1.96 + 0.84
  const double ratio = kZ * kThroughputCv / std::abs(relative_effect);
  return std::max(1.0, std::ceil(2.0 * ratio * ratio));
}

LeverResult evaluate_lever(const Lever& lever, const Deployment& before, const Deployment& after,
                           double concurrency) {
  LeverResult result;
  result.name = lever.name;
  result.title = lever.title;
  result.concurrency = concurrency;
  result.effort_minutes = lever.effort_minutes;
  const Throughput base = closed_loop_throughput(before, concurrency);
  const Throughput changed = closed_loop_throughput(after, concurrency);
  if (base.batch.requests < 1.0 || changed.batch.requests < 1.0) {
    result.gain_ratio = {0.0, 0.0, 0.0};
    result.reason = base.batch.requests < 1.0
                        ? "the deployment does not fit in memory"
                        : "with this change the deployment no longer fits in memory";
    result.verdict = base.batch.requests < 1.0 ? Verdict::kCannotTell : Verdict::kSkip;
    return result;
  }
  const double gain = changed.output_tokens_per_second / base.output_tokens_per_second;
  result.gain_ratio =
      log_normal_interval(gain, std::sqrt(paired_log_variance(before, after, concurrency)));
  // Drafts, layouts and other cards change the deployment, so their ceiling is priced after it; a
  // kernel's before.
  const bool changed_whole = lever.ceiling.accept_all_drafts_free || lever.ceiling.at_roofline;
  const Throughput best =
      closed_loop_throughput(changed_whole ? after : before, concurrency, lever.ceiling);
  result.ceiling_ratio = best.output_tokens_per_second / base.output_tokens_per_second;
  if (lever.effort_minutes > 0.0) {
    result.gain_per_hour = (gain - 1.0) / (lever.effort_minutes / 60.0);
  }
  if (gain != 1.0) result.repeats_to_see = repeats_to_see(gain - 1.0);

  if (result.gain_ratio.p05 == 1.0 && result.gain_ratio.p95 == 1.0) {
    result.verdict = Verdict::kSkip;
    result.reason = "changes nothing here";
  } else if (result.ceiling_ratio < kWorthwhile) {
    result.verdict = Verdict::kSkip;
    result.reason = "even free it gives " + percent(result.ceiling_ratio);
  } else if (result.gain_ratio.p95 < kWorthwhile) {
    result.verdict = Verdict::kSkip;
    result.reason = "at most " + percent(result.gain_ratio.p95) + " (95 %)";
  } else if (result.gain_ratio.p05 > 1.0) {
    result.verdict = Verdict::kDo;
    result.reason = "at least " + percent(result.gain_ratio.p05) + " (5 %)";
  } else {
    result.verdict = Verdict::kCannotTell;
    result.reason = "the interval spans no gain";
  }
  if (lever.claimed_gain_ratio && *lever.claimed_gain_ratio > result.ceiling_ratio) {
    result.reason += "; the claim of " + percent(*lever.claimed_gain_ratio) +
                     " is above the ceiling of " + percent(result.ceiling_ratio);
  }
  return result;
}

}  // namespace fulcrum
