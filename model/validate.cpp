#include "model/validate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/levers.h"
#include "model/predict.h"

namespace fulcrum {
namespace {

struct Predicted {
  Throughput throughput;
  bool does_not_fit = false;
};

Predicted predict_point(const Deployment& deployment, double concurrency) {
  Predicted out{closed_loop_throughput(deployment, concurrency), false};
  if (out.throughput.batch.requests >= 1.0) return out;
  Deployment roomy = deployment;
  // Enough for any model: what is asked is the speed of what was served, not whether it fits.
  constexpr double kRoomyMib = 1024.0 * 1024.0 * 16.0;
  roomy.hardware.memory_capacity_mib.value = kRoomyMib;
  return {closed_loop_throughput(roomy, concurrency), true};
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

/// Variance of the log of a quantity from what the record leaves open: a range is uniform in the
/// log of the result between its ends (variance of a uniform: width^2 / 12).
double assumption_variance(const Case& one, MeasuredQuantity quantity) {
  double variance = 0.0;
  for (const AssumedRange& range : one.assumptions) {
    variance += range.log_sigma * range.log_sigma;
    if (!range.low || !range.high) continue;
    const double low = value_of(predict_point(*range.low, one.concurrency).throughput, quantity);
    const double high = value_of(predict_point(*range.high, one.concurrency).throughput, quantity);
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
  const Predicted predicted = predict_point(one.deployment, one.concurrency);
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
                                    std::sqrt(assumption_variance(one, quantity)));
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
      out.excluded.push_back({pair, "has " + std::to_string(arms.size()) + " arms, not two"});
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
      out.excluded.push_back({pair, "its arms measure no common quantity"});
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
    const double ratio =
        improvement(value_of(predict_point(a.deployment, a.concurrency).throughput, *common),
                    value_of(predict_point(b.deployment, b.concurrency).throughput, *common));
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
