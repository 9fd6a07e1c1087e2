#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/check.h"
#include "model/price.h"
#include "model/tally.h"

namespace fulcrum {
namespace {

/// Rounding of published figures: two or three digits.
constexpr double kRounding = 0.02;
/// TPOT is a mean over requests, tok/s one over tokens: requests of unequal length or speed may
/// part them. The widest consistent record seen is 1.38 (jasl/vllm-ds4-sm120-harness, GB10, C = 1).
constexpr double kUnequalRequests = 1.15;
constexpr double kBeyondUnequal = 1.5;

std::string text(const char* format, double a, double b = 0.0, double c = 0.0) {
  char buffer[320];
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
  std::snprintf(buffer, sizeof buffer, format, a, b, c);
  return buffer;
}

void check_order(const char* name, const LatencySummary& s, std::vector<Finding>& out) {
  const std::pair<const char*, std::optional<double>> ladder[] = {{"p50", s.p50_seconds},
                                                                  {"p90", s.p90_seconds},
                                                                  {"p95", s.p95_seconds},
                                                                  {"p99", s.p99_seconds}};
  std::optional<double> below;
  const char* below_name = "";
  for (const auto& [percentile, value] : ladder) {
    if (!value) continue;
    if (below && *value < *below * (1.0 - 1e-9)) {
      out.push_back({CheckVerdict::kImpossible, "percentile order",
                     std::string(name) + ": " + percentile + text(" of %.4g s is below ", *value) +
                         below_name + text(" of %.4g s", *below),
                     *value, *below});
    }
    below = value;
    below_name = percentile;
  }
  if (s.mean_seconds && s.p99_seconds && s.p50_seconds && s.std_seconds &&
      std::abs(*s.mean_seconds - *s.p50_seconds) > *s.std_seconds * (1.0 + kRounding)) {
    out.push_back({CheckVerdict::kImpossible, "mean and median",
                   std::string(name) + text(": mean %.4g s and median %.4g s lie more than one "
                                            "standard deviation (%.4g s) apart",
                                            *s.mean_seconds, *s.p50_seconds, *s.std_seconds),
                   *s.mean_seconds, *s.p50_seconds});
  }
}

void check_totals(const ServingResult& r, std::vector<Finding>& out) {
  if (r.duration_seconds && r.output_tokens && r.output_tokens_per_second) {
    const double rate = *r.output_tokens / *r.duration_seconds;
    if (std::abs(rate / *r.output_tokens_per_second - 1.0) > 0.05) {
      out.push_back({CheckVerdict::kImpossible, "tokens and duration",
                     text("%.6g output tokens in %.4g s are %.4g tok/s", *r.output_tokens,
                          *r.duration_seconds, rate) +
                         text(", not %.4g", *r.output_tokens_per_second),
                     *r.output_tokens_per_second, rate});
    }
  }
  if (r.total_tokens_per_second && r.output_tokens_per_second &&
      *r.total_tokens_per_second < *r.output_tokens_per_second * (1.0 - kRounding)) {
    out.push_back({CheckVerdict::kImpossible, "total and output rate",
                   text("%.4g tok/s in all are fewer than %.4g of output",
                        *r.total_tokens_per_second, *r.output_tokens_per_second),
                   *r.total_tokens_per_second, *r.output_tokens_per_second});
  }
  if (r.ttft.mean_seconds && r.end_to_end.mean_seconds &&
      *r.ttft.mean_seconds > *r.end_to_end.mean_seconds * (1.0 + kRounding)) {
    out.push_back({CheckVerdict::kImpossible, "first token after the last",
                   text("mean TTFT %.4g s exceeds mean end to end %.4g s", *r.ttft.mean_seconds,
                        *r.end_to_end.mean_seconds),
                   *r.ttft.mean_seconds, *r.end_to_end.mean_seconds});
  }
}

void check_acceptance(const Deployment& deployment, const ServingResult& r,
                      std::vector<Finding>& out) {
  const double drafts =
      r.num_draft_tokens.value_or(static_cast<double>(deployment.speculation.draft_tokens));
  const auto bound = [&](double length, const char* what) {
    if (length > (1.0 + drafts) * (1.0 + kRounding)) {
      const bool none = drafts < 1.0;
      out.push_back(
          {none ? CheckVerdict::kNotComparable : CheckVerdict::kImpossible, "acceptance bound",
           std::string(what) + (none ? text(" %.4g, but the scenario drafts nothing", length)
                                     : text(" %.4g exceeds 1 + K = %.4g", length, 1.0 + drafts)),
           length, 1.0 + drafts});
    }
    if (length < 1.0 - kRounding) {
      out.push_back({CheckVerdict::kImpossible, "acceptance bound",
                     std::string(what) + text(" %.4g is below 1: a step yields a token", length),
                     length, 1.0});
    }
  };
  if (r.accept_length) bound(*r.accept_length, "accept length");
  if (r.itl.mean_seconds && r.tpot.mean_seconds && drafts >= 1.0) {
    bound(*r.itl.mean_seconds / *r.tpot.mean_seconds, "ITL / TPOT, the accept length they imply,");
  }
  for (std::size_t i = 1; i < r.accepted_fraction_at_position.size(); ++i) {
    if (r.accepted_fraction_at_position[i] <=
        r.accepted_fraction_at_position[i - 1] * (1.0 + 1e-9)) {
      continue;
    }
    out.push_back({CheckVerdict::kImpossible, "acceptance by position",
                   text("position %.0f is accepted more often (%.3g) than the one before it (%.3g)",
                        static_cast<double>(i + 1), r.accepted_fraction_at_position[i],
                        r.accepted_fraction_at_position[i - 1]),
                   r.accepted_fraction_at_position[i], r.accepted_fraction_at_position[i - 1]});
  }
}

/// A chunk holds the tokens of one step, so mean ITL / mean TPOT is the accept length; without
/// drafts the two are one figure, weighted by chunk and by request.
void check_itl(const ServingResult& r, std::optional<double> accept_length,
               std::vector<Finding>& out) {
  if (!r.itl.mean_seconds || !r.tpot.mean_seconds || !accept_length) return;
  const double ratio = *r.itl.mean_seconds / *r.tpot.mean_seconds;
  if (std::abs(ratio / *accept_length - 1.0) <= kUnequalRequests - 1.0) return;
  out.push_back(
      {CheckVerdict::kImplausible, "ITL against TPOT",
       text("mean ITL is %.3g times mean TPOT; with an accept length of %.3g it should be "
            "that: a few requests distort one of the means",
            ratio, *accept_length),
       ratio, accept_length});
}

/// Little's law: requests in the system = arrival rate x time in it.
void check_little(const ServingResult& r, std::vector<Finding>& out) {
  if (!r.concurrency) return;
  const double limit = *r.concurrency;
  std::optional<double> requests_per_second = r.requests_per_second;
  if (!requests_per_second && r.output_tokens_per_second && r.output_tokens_per_request) {
    requests_per_second = *r.output_tokens_per_second / *r.output_tokens_per_request;
  }
  if (requests_per_second && r.end_to_end.mean_seconds) {
    const double in_flight = *requests_per_second * *r.end_to_end.mean_seconds;
    if (in_flight > limit * 1.05) {
      out.push_back({CheckVerdict::kImpossible, "Little's law",
                     text("%.4g requests/s x %.4g s are %.4g in flight", *requests_per_second,
                          *r.end_to_end.mean_seconds, in_flight) +
                         text(", more than the %.4g allowed", limit),
                     in_flight, limit});
    }
  }
  if (!r.output_tokens_per_second) return;
  if (requests_per_second && !r.end_to_end.mean_seconds && r.ttft.mean_seconds &&
      r.tpot.mean_seconds && r.output_tokens_per_request) {
    const double each =
        *r.ttft.mean_seconds + (*r.output_tokens_per_request - 1.0) * *r.tpot.mean_seconds;
    const double in_flight = *requests_per_second * each;
    if (in_flight > limit * kUnequalRequests) {
      out.push_back({in_flight > limit * kBeyondUnequal ? CheckVerdict::kImpossible
                                                        : CheckVerdict::kImplausible,
                     "Little's law",
                     text("TTFT + (tokens - 1) x TPOT make %.4g s a request; at %.4g requests/s "
                          "that is %.4g in flight",
                          each, *requests_per_second, in_flight) +
                         text(", more than the %.4g allowed", limit),
                     in_flight, limit});
    }
  }
  // The median bounds a typical request where a few distort the mean.
  std::optional<double> tpot = r.tpot.mean_seconds;
  if (r.tpot.p50_seconds && (!tpot || *r.tpot.p50_seconds < *tpot)) tpot = r.tpot.p50_seconds;
  if (!tpot) return;
  const double in_flight = *r.output_tokens_per_second * *tpot;
  if (in_flight <= limit * kUnequalRequests) {
    if (r.tpot.mean_seconds &&
        *r.output_tokens_per_second * *r.tpot.mean_seconds > limit * kUnequalRequests) {
      out.push_back({CheckVerdict::kCannotTell, "TPOT against tok/s",
                     text("the mean TPOT of %.4g s is distorted by a few requests: with it %.4g "
                          "requests would decode at once; the median fits",
                          *r.tpot.mean_seconds, *r.output_tokens_per_second * *r.tpot.mean_seconds),
                     *r.tpot.mean_seconds, tpot});
    }
    return;
  }
  out.push_back(
      {in_flight > limit * kBeyondUnequal ? CheckVerdict::kImpossible : CheckVerdict::kImplausible,
       "TPOT against tok/s",
       text("%.4g tok/s at %.4g s a token need %.4g requests decoding at once",
            *r.output_tokens_per_second, *tpot, in_flight) +
           text("; %.4g are in flight", limit),
       in_flight, limit});
}

/// Tokens a step may yield per request at most: the measured accept length where it is stated.
double most_tokens_per_step(const Deployment& deployment, const ServingResult& r) {
  const double most =
      1.0 + r.num_draft_tokens.value_or(static_cast<double>(deployment.speculation.draft_tokens));
  return r.accept_length ? std::min(most, std::max(1.0, *r.accept_length)) : most;
}

void check_roofs(const Deployment& deployment, const Measured& measured,
                 std::vector<Finding>& out) {
  const ServingResult& r = measured.result;
  const double tokens = most_tokens_per_step(deployment, r);
  const double requests =
      std::max(1.0, std::floor(r.concurrency.value_or(1.0) / deployment.replicas()));
  const double least = least_step_seconds(deployment, requests);
  const auto report = [&](double value, double limit, const std::string& what) {
    out.push_back({CheckVerdict::kImpossible, "roof", what, value, limit});
  };
  if (measured.step_seconds && *measured.step_seconds < least * (1.0 - kRounding)) {
    report(*measured.step_seconds, least,
           text("a step of %.4g s is shorter than the %.4g s in which this GPU reads its weights",
                *measured.step_seconds, least));
  }
  const std::optional<double> tpot = r.tpot.mean_seconds ? r.tpot.mean_seconds : r.tpot.p50_seconds;
  if (tpot && *tpot < least / tokens * (1.0 - kRounding)) {
    report(*tpot, least / tokens,
           text("a TPOT of %.4g s is shorter than %.4g s: the weights of a step at datasheet "
                "bandwidth over %.3g tokens",
                *tpot, least / tokens, tokens));
  }
  if (r.output_tokens_per_second && r.concurrency) {
    const double roof = *r.concurrency * tokens / least;
    if (*r.output_tokens_per_second > roof * (1.0 + kRounding)) {
      report(*r.output_tokens_per_second, roof,
             text("%.4g tok/s at %.4g requests in flight exceed the roof of %.4g tok/s",
                  *r.output_tokens_per_second, *r.concurrency, roof));
    }
  }
}

/// Under a graph no kernel takes less time than the smallest one seen; of this kernel set.
void check_launch_floor(const Deployment& deployment, const Measured& measured,
                        std::vector<Finding>& out) {
  // 0.65 us: mean of the smallest kernel in 16 426 launches of a published profile
  // (jasl/vllm-ds4-sm120-harness 20260511, fills).
  constexpr double kSmallestKernelSeconds = 0.65e-6;
  const StepPricer pricer(deployment);
  double launches = 0.0;
  for (const StepOp& op : pricer.graph().ops) launches += op.count * pricer.binding(op).launches;
  const double each = deployment.engine.cuda_graph ? kSmallestKernelSeconds
                                                   : deployment.kernels.host.launch_seconds;
  const double floor = launches * each;
  const double tokens = most_tokens_per_step(deployment, measured.result);
  std::optional<double> step = measured.step_seconds;
  if (!step && measured.result.tpot.mean_seconds) {
    step = *measured.result.tpot.mean_seconds * tokens;
  }
  if (!step || *step >= floor * (1.0 - kRounding)) return;
  out.push_back({CheckVerdict::kImplausible, "launch floor",
                 text("a step of %.4g s is shorter than the %.0f launches of this kernel set take "
                      "at the least (%.4g s)",
                      *step, launches, floor),
                 *step, floor});
}

}  // namespace

double least_step_seconds(const Deployment& deployment, double requests) {
  const StepGraph graph = build_step_graph(deployment.model, deployment.graph_settings());
  const LawDevice device = deployment.law_device();
  StepState state;  // one token: later ones may use the same experts
  state.context = std::max(1.0, deployment.workload.cached_prefix_tokens);
  Bytes bytes(0.0);
  double compute_seconds = 0.0;
  for (const StepOp& op : graph.ops) {
    if (op.draft) continue;  // a drafter may be anything
    Launch launch = launch_at(graph, op, state);
    if (auto* moe = std::get_if<MoeLaunch>(&launch)) {
      // A rank of an expert-parallel group may hold none of a token's experts.
      if (deployment.expert_parallel > 1) continue;
      moe->routing = Routing::kUniform;
    }
    const Tally t = tally(launch);
    bytes = bytes + t.weights * op.count;
    // Weights of MXFP4 experts may run on the FP4 unit whatever the kernel does today.
    const double fastest = std::max(device.peak(t.unit), device.peak(NumberFormat::kFp4));
    compute_seconds += t.flop.value() * op.count * requests / fastest;
  }
  return std::max(bytes.value() / device.dram_bandwidth_bytes_per_second, compute_seconds);
}

std::vector<Finding> check_arithmetic(const ServingResult& r) {
  std::vector<Finding> out;
  check_order("TTFT", r.ttft, out);
  check_order("TPOT", r.tpot, out);
  check_order("ITL", r.itl, out);
  check_order("end to end", r.end_to_end, out);
  check_totals(r, out);
  check_little(r, out);
  const bool no_drafts = r.speculation == "none" || r.num_draft_tokens == 0.0;
  check_itl(r, no_drafts ? std::optional(1.0) : r.accept_length, out);
  return out;
}

std::vector<Finding> check_consistency(const Deployment& deployment, const Measured& measured) {
  ServingResult result = measured.result;
  if (deployment.speculation.draft_tokens == 0 && !result.accept_length &&
      !result.num_draft_tokens && result.speculation.empty()) {
    result.speculation = "none";
  }
  std::vector<Finding> out = check_arithmetic(result);
  check_acceptance(deployment, result, out);
  check_roofs(deployment, measured, out);
  check_launch_floor(deployment, measured, out);
  return out;
}

}  // namespace fulcrum
