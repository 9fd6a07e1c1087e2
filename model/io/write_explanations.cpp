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
          {"p95", or_null(crossover.p95)},
          {"status",
           {{"p05", name_of(crossover.p05_status)},
            {"p50", name_of(crossover.p50_status)},
            {"p95", name_of(crossover.p95_status)}}}};
}

ordered_json to_json(const std::vector<GainDip>& dips) {
  ordered_json out = ordered_json::array();
  for (const GainDip& dip : dips) {
    out.push_back({{"concurrency", dip.concurrency},
                   {"gain_ratio", dip.gain_ratio},
                   {"cause", dip.cause},
                   {"cause_ratio", dip.cause_ratio}});
  }
  return out;
}

ordered_json to_json(double concurrency, const std::vector<DraftChoice>& ladder) {
  ordered_json choices = ordered_json::array();
  for (const DraftChoice& choice : ladder) {
    choices.push_back({{"draft_tokens", choice.draft_tokens},
                       {"accept_length", choice.accept_length},
                       {"output_tokens_per_second", choice.output_tokens_per_second},
                       {"marginal_gain_ratio", choice.marginal_gain_ratio}});
  }
  return {{"concurrency", concurrency},
          {"best_draft_tokens", best_of(ladder).draft_tokens},
          {"choices", std::move(choices)}};
}

ordered_json to_json(const BatchChange& change) {
  ordered_json causes = ordered_json::array();
  for (const LedgerCause& cause : change.causes) {
    causes.push_back({{"entry", cause.entry}, {"factor", cause.factor}});
  }
  return {{"concurrency", change.concurrency},
          {"effective_batch_before", change.before.requests},
          {"effective_batch_after", change.after.requests},
          {"batch_limiter_before", name_of(change.before.limiter)},
          {"batch_limiter_after", name_of(change.after.limiter)},
          {"comparable", change.comparable()},
          {"requests_that_fit_before", change.fits_before},
          {"requests_that_fit_after", change.fits_after},
          {"ledger_causes", std::move(causes)}};
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
