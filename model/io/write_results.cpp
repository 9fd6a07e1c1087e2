#include "model/io/write_results.h"

#include <cmath>
#include <stdexcept>

namespace fulcrum::io {
namespace {

using nlohmann::ordered_json;

/// The last guard before a number leaves the program: none of the outputs can be negative or NaN.
double guarded(double value, const char* term) {
  if (!std::isfinite(value) || value < 0.0) {
    throw std::runtime_error(std::string("internal error: ") + term + " came out as " +
                             std::to_string(value));
  }
  return value;
}

ordered_json memory_json(const MemoryLedger& memory) {
  return {{"capacity", guarded(memory.capacity.value(), "memory capacity")},
          {"budget", guarded(memory.budget.value(), "memory budget")},
          {"weights", guarded(memory.weights.value(), "weights")},
          {"draft_weights", guarded(memory.draft_weights.value(), "draft weights")},
          {"request_state", guarded(memory.request_state.value(), "request state")},
          {"kv_pool", guarded(memory.kv_pool.value(), "KV pool")},
          {"outside_budget", guarded(memory.outside_budget.value(), "memory outside the budget")},
          {"reserve_activations", guarded(memory.reserve.activations.value(), "activations")},
          {"reserve_graphs", guarded(memory.reserve.graphs.value(), "graphs")},
          {"reserve_total", guarded(memory.reserve.total().value(), "reserve")},
          {"admission", guarded(memory.admission_bytes.value(), "admission")},
          {"pool_bytes_per_token",
           guarded(memory.pool_bytes_per_token.value(), "pool bytes per token")},
          {"pool_token_window", guarded(memory.pool_token.window.value(), "window rows")},
          {"pool_token_pooled", guarded(memory.pool_token.pooled.value(), "pooled rows")},
          {"pool_token_index_keys", guarded(memory.pool_token.index_keys.value(), "index keys")},
          {"pool_token_csa_state", guarded(memory.pool_token.csa_state.value(), "CSA states")},
          {"pool_token_hca_state", guarded(memory.pool_token.hca_state.value(), "HCA states")}};
}

ordered_json line_json(const BreakdownLine& line) {
  return {{"op", line.op},
          {"family", name_of(line.family)},
          {"kernel", line.kernel},
          {"count", guarded(line.count, "count")},
          {"seconds", guarded(line.seconds, "seconds of an op")},
          {"share_fraction", guarded(line.share_fraction, "share of an op")},
          {"limiter", name_of(line.limiter)},
          {"floor_seconds", guarded(line.floor_seconds, "floor of an op")},
          {"basis", name_of(line.basis)}};
}

/// Null for what has no value: a deployment that does not fit, a time per token of one token.
ordered_json to_json_or_null(const Interval& interval) {
  return interval.p50 > 0.0 ? to_json(interval) : ordered_json(nullptr);
}

ordered_json point_json(const PredictionPoint& point) {
  ordered_json breakdown = ordered_json::array();
  for (const BreakdownLine& line : point.breakdown) breakdown.push_back(line_json(line));
  return {{"concurrency", point.concurrency},
          {"effective_batch", guarded(point.effective_batch, "effective batch")},
          {"batch_limiter", name_of(point.batch_limiter)},
          {"accept_length", guarded(point.accept_length, "accept length")},
          {"step_seconds", to_json_or_null(point.step_seconds)},
          {"tpot_seconds", to_json_or_null(point.tpot_seconds)},
          {"ttft_seconds", to_json_or_null(point.ttft_seconds)},
          {"output_tokens_per_second", to_json_or_null(point.output_tokens_per_second)},
          {"output_tokens_per_second_per_user",
           to_json_or_null(point.output_tokens_per_second_per_user)},
          {"prefill_seconds", guarded(point.prefill_seconds, "prefill")},
          {"closed_loop",
           {{"regime", name_of(point.regime)},
            {"prompts_together", guarded(point.prompts_together, "prompts together")},
            {"run_efficiency_fraction", guarded(point.run_efficiency, "run efficiency")}}},
          {"eager", point.eager},
          {"fits", point.memory.fits},
          {"breakdown", std::move(breakdown)},
          {"memory_bytes", memory_json(point.memory)},
          {"pool_tokens", guarded(point.memory.pool_tokens, "pool tokens")}};
}

}  // namespace

ordered_json to_json(const Interval& interval) {
  return {{"p05", guarded(interval.p05, "a 5 % quantile")},
          {"p50", guarded(interval.p50, "a median")},
          {"p95", guarded(interval.p95, "a 95 % quantile")}};
}

ordered_json to_json(const Prediction& prediction) {
  ordered_json points = ordered_json::array();
  for (const PredictionPoint& point : prediction.points) points.push_back(point_json(point));
  return {{"schema", "fulcrum/prediction/1"},
          {"scenario", prediction.scenario},
          {"points", std::move(points)},
          {"warnings", prediction.warnings}};
}

ordered_json levers_to_json(const std::string& scenario, const std::vector<LeverResult>& levers,
                            const std::vector<LeverPortfolio>& portfolios,
                            const std::vector<std::string>& warnings) {
  ordered_json list = ordered_json::array();
  for (const LeverResult& lever : levers) {
    ordered_json entry = {
        {"name", lever.name},
        {"title", lever.title},
        {"concurrency", lever.concurrency},
        {"gain_ratio", to_json_or_null(lever.gain_ratio)},
        {"ceiling_ratio", lever.gain_ratio.p50 > 0.0
                              ? ordered_json(guarded(lever.ceiling_ratio, "a ceiling"))
                              : ordered_json(nullptr)},
        {"effort_minutes", guarded(lever.effort_minutes, "effort")},
        {"gain_per_hour", lever.gain_per_hour},
        {"verdict", name_of(lever.verdict)},
        {"repeats_to_see", nullptr},
        {"reason", lever.reason},
    };
    if (lever.repeats_to_see) entry["repeats_to_see"] = *lever.repeats_to_see;
    list.push_back(std::move(entry));
  }
  ordered_json plans = ordered_json::array();
  for (const LeverPortfolio& plan : portfolios) {
    ordered_json steps = ordered_json::array();
    for (std::size_t i = 0; i < plan.names.size(); ++i) {
      const PortfolioStep& step = plan.portfolio.steps[i];
      steps.push_back({{"name", plan.names[i]},
                       {"effort_minutes", step.effort_minutes},
                       {"output_tokens_per_second", guarded(step.value, "a portfolio's step")}});
    }
    plans.push_back({{"concurrency", plan.concurrency},
                     {"budget_minutes", plan.budget_minutes},
                     {"effort_minutes", plan.portfolio.effort_minutes},
                     {"gain_ratio", to_json(plan.gain_ratio)},
                     {"levers", std::move(steps)}});
  }
  return {{"schema", "fulcrum/levers/1"},
          {"scenario", scenario},
          {"levers", std::move(list)},
          {"portfolios", std::move(plans)},
          {"warnings", warnings}};
}

}  // namespace fulcrum::io
