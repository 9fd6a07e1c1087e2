#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/check.h"
#include "model/predict.h"

namespace fulcrum {
namespace {

std::string text(const char* format, double a, double b = 0.0, double c = 0.0) {
  char buffer[320];
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
  std::snprintf(buffer, sizeof buffer, format, a, b, c);
  return buffer;
}

void compare_numbers(const ServingResult& a, const ServingResult& b, std::vector<Finding>& out) {
  struct Setting {
    const char* what;
    std::optional<double> ServingResult::*member;
    double tolerance;  ///< relative
  };
  // Lengths of real prompts scatter by a few percent from run to run; settings do not.
  const Setting settings[] = {
      {"concurrency", &ServingResult::concurrency, 1e-9},
      {"request rate", &ServingResult::request_rate_per_second, 1e-9},
      {"number of prompts", &ServingResult::num_prompts, 1e-9},
      {"GPUs", &ServingResult::num_gpus, 1e-9},
      {"tensor parallelism", &ServingResult::tensor_parallel, 1e-9},
      {"expert parallelism", &ServingResult::expert_parallel, 1e-9},
      {"input tokens a request", &ServingResult::input_tokens_per_request, 0.05},
      {"output tokens a request", &ServingResult::output_tokens_per_request, 0.05},
      {"requests in flight on average", &ServingResult::mean_concurrency, 0.10},
  };
  for (const Setting& setting : settings) {
    const auto x = a.*setting.member;
    const auto y = b.*setting.member;
    if (!x || !y || std::abs(*y - *x) <= setting.tolerance * std::abs(*x)) continue;
    out.push_back({CheckVerdict::kNotComparable, "same conditions",
                   std::string(setting.what) + text(" differ: %.5g and %.5g", *x, *y), *y, *x});
  }
}

void compare_texts(const ServingResult& a, const ServingResult& b, std::vector<Finding>& out) {
  for (const auto& [what, member] :
       {std::pair{"model", &ServingResult::model}, std::pair{"engine", &ServingResult::engine},
        std::pair{"engine version", &ServingResult::engine_version},
        std::pair{"hardware", &ServingResult::hardware},
        std::pair{"client", &ServingResult::tool}}) {
    const std::string& x = a.*member;
    const std::string& y = b.*member;
    if (x.empty() || y.empty() || x == y) continue;
    out.push_back({CheckVerdict::kNotComparable,
                   "same conditions",
                   std::string(what).append(" differs: ").append(x).append(" and ").append(y),
                   {},
                   {}});
  }
}

/// First requests that wait for compilation or page in weights show in the tail of TTFT.
void compare_warm_up(const ServingResult& a, const ServingResult& b, std::vector<Finding>& out) {
  constexpr double kColdTail = 10.0;
  const auto tail = [](const ServingResult& r) -> std::optional<double> {
    if (!r.ttft.p99_seconds || !r.ttft.p50_seconds || *r.ttft.p50_seconds <= 0.0) return {};
    return *r.ttft.p99_seconds / *r.ttft.p50_seconds;
  };
  const auto x = tail(a);
  const auto y = tail(b);
  if (!x || !y || (*x > kColdTail) == (*y > kColdTail)) return;
  out.push_back(
      {CheckVerdict::kNotComparable, "warm-up",
       text("p99 / p50 of TTFT is %.3g in one arm and %.3g in the other: one was not warm", *x, *y),
       *y, *x});
}

void compare_batches(const Arm& a, const Arm& b, std::vector<Finding>& out) {
  const auto load = [](const Arm& arm) { return arm.measured.result.concurrency; };
  if (!load(a) || !load(b)) return;
  const Throughput x = closed_loop_throughput(a.deployment, *load(a));
  const Throughput y = closed_loop_throughput(b.deployment, *load(b));
  if (std::abs(x.batch.requests - y.batch.requests) < 0.5) return;
  out.push_back({CheckVerdict::kNotComparable, "effective batch",
                 text("%.0f requests are in flight, but %.0f decode at once in A and %.0f in B",
                      *load(b), x.batch.requests, y.batch.requests) +
                     " (limited by " + std::string(name_of(x.batch.limiter)) + " and " +
                     std::string(name_of(y.batch.limiter)) +
                     "): the gain holds the loss of batch as well",
                 y.batch.requests, x.batch.requests});
}

/// Tokens/s, else 1 / TPOT, of both arms.
std::optional<double> measured_gain(const ServingResult& a, const ServingResult& b) {
  if (a.output_tokens_per_second && b.output_tokens_per_second) {
    return *b.output_tokens_per_second / *a.output_tokens_per_second;
  }
  if (a.tpot.mean_seconds && b.tpot.mean_seconds)
    return *a.tpot.mean_seconds / *b.tpot.mean_seconds;
  return std::nullopt;
}

void compare_gain(const Arm& a, const Arm& b, std::vector<Finding>& out) {
  const auto gain = measured_gain(a.measured.result, b.measured.result);
  if (!gain) {
    out.push_back(
        {CheckVerdict::kCannotTell, "gain", "the arms share neither tok/s nor TPOT", {}, {}});
    return;
  }
  constexpr double kPercent = 100.0;
  const double noise = kNormalP95 * std::sqrt(2.0) * kThroughputCv;
  if (std::abs(std::log(*gain)) < noise) {
    out.push_back(
        {CheckVerdict::kCannotTell, "run-to-run noise",
         text("a difference of %+.2f %% lies within the noise of two single runs (%.1f %%)",
              kPercent * (*gain - 1.0), kPercent * noise) +
             (std::abs(*gain - 1.0) > 1e-4
                  ? text("; %.0f repeats an arm would show it", repeats_to_see(*gain - 1.0))
                  : std::string()),
         *gain, 1.0});
  }
  const auto load = b.measured.result.concurrency;
  if (!load || a.measured.result.concurrency != load) return;
  const LeverResult predicted = evaluate_lever(Lever{}, a.deployment, b.deployment, *load);
  if (predicted.gain_ratio.p50 <= 0.0) return;
  const double sigma = std::log(predicted.gain_ratio.p95 / predicted.gain_ratio.p50) / kNormalP95;
  const Interval seen = log_normal_interval(predicted.gain_ratio.p50,
                                            std::hypot(sigma, std::sqrt(2.0) * kThroughputCv));
  const bool inside = *gain >= seen.p05 && *gain <= seen.p95;
  const double z =
      std::abs(std::log(*gain / seen.p50)) / (std::log(seen.p95 / seen.p50) / kNormalP95);
  constexpr double kImplausibleZ = 3.09;
  out.push_back({inside              ? CheckVerdict::kPlausible
                 : z > kImplausibleZ ? CheckVerdict::kImplausible
                                     : CheckVerdict::kCannotTell,
                 "model, gain",
                 text("%.3gx measured, ", *gain) + text("%.3gx predicted (%.3g to %.3g with noise)",
                                                        seen.p50, seen.p05, seen.p95),
                 *gain, seen.p50});
}

}  // namespace

CheckReport check_pair(const Arm& a, const Arm& b) {
  std::vector<Finding> findings;
  for (const auto& [name, arm] : {std::pair{"A", &a}, std::pair{"B", &b}}) {
    for (Finding& finding : check_consistency(arm->deployment, arm->measured)) {
      finding.text = std::string(name) + ": " + finding.text;
      findings.push_back(std::move(finding));
    }
  }
  const ServingResult& x = a.measured.result;
  const ServingResult& y = b.measured.result;
  compare_numbers(x, y, findings);
  compare_texts(x, y, findings);
  compare_warm_up(x, y, findings);
  compare_batches(a, b, findings);
  compare_gain(a, b, findings);
  return report_of(std::move(findings));
}

}  // namespace fulcrum
