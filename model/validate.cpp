#include "model/validate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/levers.h"
#include "model/predict.h"
#include "model/simulate.h"

namespace fulcrum {
namespace {

struct Predicted {
  Throughput throughput;
  bool does_not_fit = false;
};

/// The benchmark as its client ran it: so many prompts, so many in flight, ramp and drain included.
/// Replaces the steady state's figures by the run's; the spread stays.
void play_benchmark(const Deployment& deployment, double concurrency, double num_prompts,
                    double length_ratio, Throughput& steady) {
  // Beyond so many tokens ramp and drain no longer show; whole rounds keep the shape of a run.
  constexpr double kMostTokens = 4e6;
  constexpr double kLeastRounds = 8.0;
  const double replicas = std::max(1.0, std::min(deployment.replicas(), concurrency));
  Traffic traffic;
  traffic.concurrency = std::max(1.0, std::round(concurrency / replicas));
  // So many clients never leave the ramp of a bounded run: the steady state has to do.
  if (traffic.concurrency * deployment.workload.output_tokens > kMostTokens) return;
  traffic.input_tokens = deployment.workload.input_tokens;
  traffic.output_tokens = deployment.workload.output_tokens;
  traffic.lengths =
      length_ratio < 1.0 ? LengthSpread::uniform(length_ratio) : deployment.workload.lengths;
  const double most = std::max(kLeastRounds * traffic.concurrency,
                               kMostTokens / std::max(1.0, traffic.output_tokens));
  traffic.num_requests =
      static_cast<std::int64_t>(std::max(1.0, std::min(most, std::round(num_prompts / replicas))));
  SimulationOptions options;
  options.policy = default_policy(deployment.engine.kind);
  if (options.policy == SchedulerPolicy::kMixed) options.reserved_output_fraction = 0.0;
  const SimulationResult run = simulate(deployment, traffic, options);
  if (run.completed < 1 || run.output_tokens_per_second <= 0.0) return;
  steady.output_tokens_per_second = run.output_tokens_per_second * replicas;
  if (run.tpot.count() > 0 && run.tpot.mean() > 0.0) steady.tpot_seconds = run.tpot.mean();
  if (run.ttft.count() > 0) steady.ttft_seconds = run.ttft.mean();
}

Predicted predict_point(const Deployment& given, double concurrency,
                        std::optional<double> num_prompts, double length_ratio) {
  Deployment roomy;
  const Deployment* deployment = &given;
  Predicted out{closed_loop_throughput(given, concurrency), false};
  if (out.throughput.batch.requests < 1.0) {
    // Enough for any model: what is asked is the speed of what was served, not whether it fits.
    constexpr double kRoomyMib = 1024.0 * 1024.0 * 16.0;
    roomy = given;
    roomy.hardware.memory_capacity_mib.value = kRoomyMib;
    deployment = &roomy;
    out = {closed_loop_throughput(roomy, concurrency), true};
  }
  if (num_prompts) {
    play_benchmark(*deployment, concurrency, *num_prompts, length_ratio, out.throughput);
  }
  return out;
}

Predicted predict_case(const Case& one, const Deployment& deployment) {
  return predict_point(deployment, one.concurrency, one.measured.result.num_prompts,
                       one.length_ratio);
}

double value_of(const Throughput& t, MeasuredQuantity quantity) {
  switch (quantity) {
    case MeasuredQuantity::kTpot:
      return t.tpot_seconds;
    case MeasuredQuantity::kStep:
      return t.step_seconds;
    case MeasuredQuantity::kThroughput:
      return t.output_tokens_per_second;
    case MeasuredQuantity::kTtft:
      return t.ttft_seconds;
  }
  return 0.0;
}

double sigma_of(const Throughput& t, MeasuredQuantity quantity) {
  return quantity == MeasuredQuantity::kStep ? t.step_log_sigma : t.log_sigma;
}

std::optional<double> measured_value(const Measured& measured, MeasuredQuantity quantity) {
  const ServingResult& r = measured.result;
  switch (quantity) {
    case MeasuredQuantity::kTpot:
      return r.tpot.mean_seconds ? r.tpot.mean_seconds : r.tpot.p50_seconds;
    case MeasuredQuantity::kStep:
      return measured.step_seconds;
    case MeasuredQuantity::kThroughput:
      return r.output_tokens_per_second;
    case MeasuredQuantity::kTtft:
      return r.ttft.mean_seconds ? r.ttft.mean_seconds : r.ttft.p50_seconds;
  }
  return std::nullopt;
}

constexpr std::array<MeasuredQuantity, kNumQuantities> kQuantities{
    MeasuredQuantity::kTpot, MeasuredQuantity::kStep, MeasuredQuantity::kThroughput,
    MeasuredQuantity::kTtft};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double part = place - static_cast<double>(below);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] * (1.0 - part) + values[above] * part;
}

/// Predictions at both ends of every range of a case.
struct RangeEnds {
  Throughput low;
  Throughput high;
};
std::vector<RangeEnds> range_ends(const Case& one) {
  std::vector<RangeEnds> ends;
  for (const AssumedRange& range : one.assumptions) {
    if (!range.low || !range.high) continue;
    ends.push_back(
        {predict_case(one, *range.low).throughput, predict_case(one, *range.high).throughput});
  }
  return ends;
}

/// Variance of the log of a quantity from what the record leaves open: a range is uniform in the
/// log of the result between its ends (variance of a uniform: width^2 / 12).
double assumption_variance(const Case& one, const std::vector<RangeEnds>& ends,
                           MeasuredQuantity quantity) {
  double variance = 0.0;
  for (const AssumedRange& range : one.assumptions) variance += range.log_sigma * range.log_sigma;
  for (const RangeEnds& end : ends) {
    const double low = value_of(end.low, quantity);
    const double high = value_of(end.high, quantity);
    if (low <= 0.0 || high <= 0.0) continue;
    const double width = std::log(high / low);
    variance += width * width / 12.0;
  }
  return variance;
}

}  // namespace

std::string_view name_of(MeasuredQuantity quantity) {
  constexpr std::string_view kNames[] = {"tpot_seconds", "step_seconds", "output_tokens_per_second",
                                         "ttft_seconds"};
  return kNames[static_cast<int>(quantity)];
}

std::string speculation_label(const Speculation& speculation) {
  if (speculation.draft_tokens == 0) return "none";
  return std::string(name_of(speculation.method)) + " " + std::to_string(speculation.draft_tokens);
}

std::vector<Score> score_case(const Case& one) {
  const Predicted predicted = predict_case(one, one.deployment);
  const std::vector<RangeEnds> ends = range_ends(one);
  std::vector<Score> scores;
  for (const MeasuredQuantity quantity : kQuantities) {
    const std::optional<double> measured = measured_value(one.measured, quantity);
    const double value = value_of(predicted.throughput, quantity);
    if (!measured || value <= 0.0) continue;
    Score score;
    score.id = one.id;
    score.panel = one.panel;
    score.split = one.split;
    score.kernel_set = one.deployment.kernels.name;
    score.speculation = speculation_label(one.deployment.speculation);
    score.hardware = one.deployment.hardware.name;
    score.concurrency = one.concurrency;
    score.quantity = quantity;
    const double sigma = std::hypot(sigma_of(predicted.throughput, quantity),
                                    std::sqrt(assumption_variance(one, ends, quantity)));
    score.predicted = log_normal_interval(value, sigma);
    score.measured = *measured;
    score.log_error = std::log(value / *measured);
    score.ape = std::abs(value / *measured - 1.0);
    score.covered = *measured >= score.predicted.p05 && *measured <= score.predicted.p95;
    score.does_not_fit = predicted.does_not_fit;
    scores.push_back(std::move(score));
  }
  return scores;
}

std::optional<double> shape_error(std::span<const Score> scores) {
  std::map<std::pair<std::string, MeasuredQuantity>, std::vector<const Score*>> panels;
  for (const Score& score : scores) {
    if (!score.panel.empty()) panels[{score.panel, score.quantity}].push_back(&score);
  }
  double sum = 0.0;
  std::size_t count = 0;
  for (auto& [key, points] : panels) {
    const Score& anchor = **std::min_element(
        points.begin(), points.end(),
        [](const Score* a, const Score* b) { return a->concurrency < b->concurrency; });
    for (const Score* point : points) {
      if (point->concurrency <= anchor.concurrency) continue;
      sum += std::abs(std::exp(point->log_error - anchor.log_error) - 1.0);
      ++count;
    }
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::optional<ScoreSummary> summarise(std::span<const Score> scores) {
  if (scores.empty()) return std::nullopt;
  ScoreSummary summary;
  summary.n = scores.size();
  const auto n = static_cast<double>(scores.size());
  std::vector<double> apes;
  double log_sum = 0.0;
  for (const Score& score : scores) {
    apes.push_back(score.ape);
    summary.mape += score.ape / n;
    log_sum += score.log_error;
    summary.coverage += score.covered ? 1.0 / n : 0.0;
  }
  summary.median_ape = quantile(apes, 0.5);
  summary.p90_ape = quantile(apes, 0.9);
  summary.bias = std::exp(log_sum / n) - 1.0;
  summary.shape_error = shape_error(scores);
  return summary;
}

std::vector<SplitSummary> split_by(std::string_view key, std::span<const Score> scores) {
  std::map<std::string, std::vector<Score>> groups;
  for (const Score& score : scores) {
    std::string value;
    if (key == "kernel_set") value = score.kernel_set;
    if (key == "speculation") value = score.speculation;
    if (key == "hardware") value = score.hardware;
    if (key == "split") value = score.split;
    if (key == "quantity") value = name_of(score.quantity);
    if (!value.empty()) groups[value].push_back(score);
  }
  std::vector<SplitSummary> splits;
  for (const auto& [value, members] : groups) {
    splits.push_back({std::string(key), value, *summarise(members)});
  }
  return splits;
}

GainScores score_gains(std::span<const Case> cases) {
  std::map<std::string, std::vector<const Case*>> pairs;
  for (const Case& one : cases) {
    if (!one.pair.empty()) pairs[one.pair].push_back(&one);
  }
  GainScores out;
  for (const auto& [pair, arms] : pairs) {
    if (arms.size() != 2) {
      out.excluded.push_back({pair, "has " + std::to_string(arms.size()) + " arms, not two", {}});
      continue;
    }
    const Case& a = *arms[0];
    const Case& b = *arms[1];
    std::optional<MeasuredQuantity> common;
    for (const MeasuredQuantity quantity :
         {MeasuredQuantity::kThroughput, MeasuredQuantity::kTpot, MeasuredQuantity::kStep}) {
      if (measured_value(a.measured, quantity) && measured_value(b.measured, quantity)) {
        common = quantity;
        break;
      }
    }
    if (!common) {
      out.excluded.push_back({pair, "its arms measure no common quantity", {}});
      continue;
    }
    const bool higher_is_better = *common == MeasuredQuantity::kThroughput;
    const auto improvement = [&](double before, double after) {
      return higher_is_better ? after / before : before / after;
    };
    GainScore gain;
    gain.pair = pair;
    gain.before = a.id;
    gain.after = b.id;
    gain.quantity = *common;
    gain.measured_ratio =
        improvement(*measured_value(a.measured, *common), *measured_value(b.measured, *common));
    const double ratio = improvement(value_of(predict_case(a, a.deployment).throughput, *common),
                                     value_of(predict_case(b, b.deployment).throughput, *common));
    const Interval paired =
        evaluate_lever(Lever{}, a.deployment, b.deployment, b.concurrency).gain_ratio;
    const double sigma = paired.p50 > 0.0 ? std::log(paired.p95 / paired.p50) / kNormalP95 : 0.0;
    gain.predicted_ratio = log_normal_interval(ratio, sigma);
    const Interval seen =
        log_normal_interval(ratio, std::hypot(sigma, std::sqrt(2.0) * kThroughputCv));
    gain.covered = gain.measured_ratio >= seen.p05 && gain.measured_ratio <= seen.p95;
    constexpr double kPercent = 100.0;
    gain.error_points = kPercent * (ratio - gain.measured_ratio);
    gain.sign_right = (ratio >= 1.0) == (gain.measured_ratio >= 1.0);
    out.gains.push_back(std::move(gain));
  }
  return out;
}

}  // namespace fulcrum
