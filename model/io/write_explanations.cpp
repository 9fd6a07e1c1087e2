#include "model/io/write_explanations.h"

#include "model/io/write_results.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

ordered_json quantiles(const DurationHistogram& histogram) {
  return {{"mean", histogram.mean()},        {"p50", histogram.quantile(0.50)},
          {"p90", histogram.quantile(0.90)}, {"p95", histogram.quantile(0.95)},
          {"p99", histogram.quantile(0.99)}, {"count", histogram.count()}};
}

}  // namespace

ordered_json to_json(const std::vector<WaterfallBar>& bars) {
  ordered_json out = ordered_json::array();
  for (const WaterfallBar& bar : bars) {
    out.push_back(
        {{"name", bar.name}, {"seconds", bar.seconds}, {"until_seconds", bar.until_seconds}});
  }
  return out;
}

ordered_json to_json(const SpeculationPoint& point) {
  ordered_json causes = ordered_json::array();
  for (const GainCause& cause : point.causes) {
    causes.push_back({{"name", cause.name},
                      {"factor", cause.factor},
                      {"gain_without_it", cause.gain_without_it}});
  }
  return {{"concurrency", point.concurrency},
          {"gain_ratio", to_json(point.gain_ratio)},
          {"accept_length", point.accept_length},
          {"effective_batch_without", point.batch_without.requests},
          {"effective_batch_with", point.batch_with.requests},
          {"batch_limiter_with", name_of(point.batch_with.limiter)},
          {"eager_without", point.eager_without},
          {"eager_with", point.eager_with},
          {"comparable", point.comparable},
          {"causes", std::move(causes)}};
}

ordered_json to_json(const Crossover& crossover) {
  return {{"p05", or_null(crossover.p05)},
          {"p50", or_null(crossover.p50)},
          {"p95", or_null(crossover.p95)}};
}

ordered_json to_json(const TargetAnswer& answer) {
  ordered_json bounds = ordered_json::array();
  for (std::size_t i = 0; i < answer.bounds.size(); ++i) {
    const RooflineBound& bound = answer.bounds[i];
    bounds.push_back({{"concurrency", bound.concurrency},
                      {"effective_batch", bound.batch},
                      {"roof_tokens_per_second", bound.output_tokens_per_second},
                      {"predicted_tokens_per_second", answer.predicted[i]},
                      {"largest_family", bound.largest_family},
                      {"largest_share_fraction", bound.largest_share}});
  }
  return {{"target_tokens_per_second", answer.target_tokens_per_second},
          {"physical_from_concurrency", or_null(answer.physical_from)},
          {"predicted_from_concurrency", or_null(answer.predicted_from)},
          {"bounds", std::move(bounds)}};
}

ordered_json to_json(const SimulationResult& r) {
  return {{"offered", r.offered},
          {"completed", r.completed},
          {"rejected", r.rejected},
          {"retractions", r.retractions},
          {"decode_steps", r.decode_steps},
          {"prefill_steps", r.prefill_steps},
          {"makespan_seconds", r.makespan_seconds},
          {"output_tokens_per_second", r.output_tokens_per_second},
          {"steady_output_tokens_per_second", r.steady_output_tokens_per_second},
          {"requests_per_second", r.requests_per_second},
          {"mean_batch", r.mean_batch},
          {"mean_in_system", r.mean_in_system},
          {"pool_peak_fraction", r.pool_peak_fraction},
          {"ttft_seconds", quantiles(r.ttft)},
          {"tpot_seconds", quantiles(r.tpot)},
          {"tpot_by_tokens_seconds", r.tpot_by_tokens_seconds},
          {"itl_seconds", quantiles(r.itl)},
          {"end_to_end_seconds", quantiles(r.end_to_end)}};
}

}  // namespace fulcrum::io
