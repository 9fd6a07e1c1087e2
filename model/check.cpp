#include "model/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/predict.h"
#include "model/validate.h"

namespace fulcrum {
namespace {

/// Beyond 99.8 % of the predicted distribution (two-sided) a measurement is called implausible.
constexpr double kImplausibleZ = 3.09;

std::string text(const char* format, double a, double b = 0.0, double c = 0.0) {
  char buffer[320];
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
  std::snprintf(buffer, sizeof buffer, format, a, b, c);
  return buffer;
}

std::string shown(MeasuredQuantity quantity, double value) {
  if (quantity == MeasuredQuantity::kThroughput) return text("%.4g tok/s", value);
  constexpr double kMilli = 1e3;
  return text("%.4g ms", value * kMilli);
}

/// The batch at which the deployment would yield `tokens_per_second`, where a smaller one does.
std::optional<int> batch_of_rate(const Deployment& deployment, double concurrency,
                                 double tokens_per_second) {
  constexpr double kNear = 0.07;
  constexpr int kMostBatch = 512;
  std::optional<int> best;
  double best_error = kNear;
  for (int batch = 1; batch < std::min<double>(concurrency, kMostBatch); ++batch) {
    Deployment limited = deployment;
    limited.engine.max_running_requests = batch;
    const double rate = closed_loop_throughput(limited, concurrency).output_tokens_per_second;
    const double error = std::abs(rate / tokens_per_second - 1.0);
    if (error < best_error) {
      best = batch;
      best_error = error;
    }
  }
  return best;
}

/// The step's line whose cost is known worst, by seconds x spread: what a gap points at first.
struct Suspect {
  std::string op;
  std::string kernel;
  double seconds = 0.0;
};
Suspect worst_known(const Deployment& deployment, const PredictionPoint& point) {
  Suspect suspect;
  double worst = -1.0;
  for (const BreakdownLine& line : point.breakdown) {
    double sigma = deployment.kernels.host.system_log_sigma;
    for (int i = 0; i < kNumOpIds; ++i) {
      const KernelBinding& bound = deployment.kernels.binding(static_cast<OpId>(i));
      if (bound.kernel == line.kernel) sigma = std::max(sigma, bound.log_sigma);
    }
    if (line.seconds * sigma > worst) {
      worst = line.seconds * sigma;
      suspect = {line.op, line.kernel, line.seconds};
    }
  }
  return suspect;
}

/// What would have to be otherwise for the measurement to be right.
std::string explanation(const Deployment& deployment, double concurrency, const Score& score) {
  Deployment at = deployment;
  at.workload.concurrency = {concurrency};
  const PredictionPoint point = predict(at).points.front();
  if (point.breakdown.empty()) return "";
  const bool rate = score.quantity == MeasuredQuantity::kThroughput;
  // How much longer a step took than predicted, if the step alone is to blame.
  const double slower =
      rate ? score.predicted.p50 / score.measured : score.measured / score.predicted.p50;
  const double step = point.step_seconds.p50;
  const double extra = step * (slower - 1.0);
  constexpr double kMilli = 1e3;
  if (slower < 1.0) {
    std::string why = text("it needs a step of %.3g ms where these kernels take %.3g ms",
                           step * slower * kMilli, step * kMilli);
    const auto longest =
        std::max_element(point.breakdown.begin(), point.breakdown.end(),
                         [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    why += "; " + longest->op +
           text(" alone takes %.3g ms: other kernels than ", longest->seconds * kMilli) +
           deployment.kernels.name + ", or another model";
    return why;
  }
  const Suspect suspect = worst_known(deployment, point);
  std::string why = suspect.op + " (" + suspect.kernel + ")" +
                    text(" would have to take %.3g ms instead of %.3g ms a step",
                         (suspect.seconds + extra) * kMilli, suspect.seconds * kMilli);
  if (rate) {
    if (const auto batch = batch_of_rate(deployment, concurrency, score.measured)) {
      why += ", or only " + std::to_string(*batch) +
             text(" of the %.0f requests decode at once", concurrency);
    }
  }
  return why;
}

std::string range_text(const Score& score) {
  return shown(score.quantity, score.predicted.p50) + " predicted (" +
         shown(score.quantity, score.predicted.p05) + " to " +
         shown(score.quantity, score.predicted.p95) + ")";
}

Case case_of(const Deployment& deployment, const Measured& measured) {
  Case one;
  one.deployment = deployment;
  one.measured = measured;
  one.concurrency = measured.result.concurrency.value_or(
      deployment.workload.concurrency.size() == 1 ? deployment.workload.concurrency[0] : 1.0);
  if (measured.result.accept_length && deployment.speculation.draft_tokens > 0) {
    one.acceptance_is_measured =
        condition_on_accept_length(one.deployment.speculation, *measured.result.accept_length);
  }
  // Lengths as measured, where the client says them.
  if (const auto x = measured.result.input_tokens_per_request; x && *x >= 1.0) {
    one.deployment.workload.input_tokens = *x;
    one.deployment.workload.cached_prefix_tokens =
        std::min(one.deployment.workload.cached_prefix_tokens, *x - 1.0);
  }
  if (const auto x = measured.result.output_tokens_per_request; x && *x >= 1.0) {
    one.deployment.workload.output_tokens = *x;
  }
  return one;
}

}  // namespace

std::string_view name_of(CheckVerdict verdict) {
  constexpr std::string_view kNames[] = {"plausible", "cannot_tell", "not_comparable",
                                         "implausible", "impossible"};
  return kNames[static_cast<int>(verdict)];
}

std::vector<Finding> check_against_model(const Case& one) {
  std::vector<Finding> out;
  bool any = false;
  for (const Score& score : score_case(one)) {
    if (score.quantity == MeasuredQuantity::kTtft) continue;  // decided by how clients arrive
    any = true;
    const double sigma = std::log(score.predicted.p95 / score.predicted.p50) / kNormalP95;
    const double z = std::abs(score.log_error) / std::max(sigma, 1e-9);
    Finding finding;
    finding.rule = "model, " + std::string(name_of(score.quantity));
    finding.measured = score.measured;
    finding.limit = score.predicted.p50;
    finding.text = shown(score.quantity, score.measured) + " measured, " + range_text(score);
    if (score.covered) {
      finding.verdict = CheckVerdict::kPlausible;
    } else {
      finding.verdict = z > kImplausibleZ ? CheckVerdict::kImplausible : CheckVerdict::kCannotTell;
      finding.text += ": " + explanation(one.deployment, one.concurrency, score);
    }
    out.push_back(std::move(finding));
  }
  if (!any) {
    out.push_back({CheckVerdict::kCannotTell,
                   "model",
                   "no rate, latency or step is measured that the model predicts",
                   {},
                   {}});
  }
  const ServingResult& r = one.measured.result;
  if (r.num_prompts && r.concurrency && *r.num_prompts < 2.0 * *r.concurrency) {
    out.push_back({CheckVerdict::kCannotTell, "ramp and drain",
                   text("%.0f prompts at %.0f in flight: most of the run is ramp and drain, not a "
                        "steady state",
                        *r.num_prompts, *r.concurrency),
                   *r.num_prompts, 2.0 * *r.concurrency});
  }
  return out;
}

CheckReport report_of(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.verdict > b.verdict; });
  CheckReport report;
  report.findings = std::move(findings);
  if (report.findings.empty()) return report;
  report.verdict = report.findings.front().verdict;
  // A side remark that cannot tell does not outweigh a prediction that agrees.
  if (report.verdict == CheckVerdict::kCannotTell) {
    const bool agrees =
        std::any_of(report.findings.begin(), report.findings.end(),
                    [](const Finding& f) { return f.verdict == CheckVerdict::kPlausible; });
    const bool misses =
        std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& f) {
          return f.verdict == CheckVerdict::kCannotTell && f.rule.starts_with("model");
        });
    if (agrees && !misses) report.verdict = CheckVerdict::kPlausible;
  }
  return report;
}

CheckReport check_case(const Case& one) {
  Measured measured = one.measured;
  measured.result.concurrency = one.concurrency;
  std::vector<Finding> findings = check_consistency(one.deployment, measured);
  for (Finding& finding : check_against_model(one)) findings.push_back(std::move(finding));
  return report_of(std::move(findings));
}

CheckReport check(const Deployment& deployment, const Measured& measured) {
  if (measured.result.concurrency || deployment.workload.concurrency.size() == 1) {
    return check_case(case_of(deployment, measured));
  }
  std::vector<Finding> findings = check_consistency(deployment, measured);
  findings.push_back({CheckVerdict::kCannotTell,
                      "model",
                      "the measurement states no concurrency: nothing to predict",
                      {},
                      {}});
  return report_of(std::move(findings));
}

CheckReport check_claim(const LeverResult& lever, double claimed_ratio) {
  Finding finding;
  finding.rule = "claimed gain";
  finding.measured = claimed_ratio;
  const Interval& gain = lever.gain_ratio;
  const std::string said = text("%.3gx is claimed", claimed_ratio);
  const std::string predicted =
      text("%.3gx predicted (%.3g to %.3g)", gain.p50, gain.p05, gain.p95);
  constexpr double kCeilingSlack = 1.05;  // the ceiling is taken at the median step
  if (claimed_ratio > std::max(lever.ceiling_ratio, gain.p95) * kCeilingSlack) {
    finding.verdict = CheckVerdict::kImpossible;
    finding.limit = lever.ceiling_ratio;
    finding.text = said + "; if what " + lever.name +
                   text(" acts on took no time at all, it would give %.3gx", lever.ceiling_ratio) +
                   ", " + predicted;
  } else if (claimed_ratio > gain.p95 || claimed_ratio < gain.p05) {
    finding.verdict = CheckVerdict::kImplausible;
    finding.limit = claimed_ratio > gain.p95 ? gain.p95 : gain.p05;
    finding.text = said + ", " + predicted + text("; the ceiling is %.3gx", lever.ceiling_ratio);
  } else {
    finding.verdict = CheckVerdict::kPlausible;
    finding.text = said + ", " + predicted;
  }
  return report_of({finding});
}

}  // namespace fulcrum
