#include "model/explain_step.h"

#include <algorithm>
#include <map>

#include "model/speculation.h"

namespace fulcrum {

std::vector<WaterfallBar> step_waterfall(const PredictionPoint& point) {
  double floor_seconds = 0.0;
  double gap_seconds = 0.0;
  std::map<OpFamily, double> excess;
  for (const BreakdownLine& line : point.breakdown) {
    if (line.family == OpFamily::kGap) {
      gap_seconds += line.seconds;
      continue;
    }
    floor_seconds += line.floor_seconds;
    excess[line.family] += line.seconds - line.floor_seconds;
  }
  std::vector<WaterfallBar> bars;
  for (const auto& [family, seconds] : excess) {
    bars.push_back({std::string(name_of(family)), seconds, 0.0});
  }
  std::stable_sort(bars.begin(), bars.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  bars.insert(bars.begin(), {"floor", floor_seconds, 0.0});
  bars.push_back({"gap", gap_seconds, 0.0});
  double total = 0.0;
  for (WaterfallBar& bar : bars) bar.until_seconds = total += bar.seconds;
  bars.push_back({"step", total, total});
  return bars;
}

RooflineBound roofline_bound(const Deployment& deployment, double concurrency) {
  const Workload& work = deployment.workload;
  RooflineBound bound;
  bound.concurrency = concurrency;
  const double per_replica = std::max(1.0, concurrency / deployment.replicas());
  const EffectiveBatch batch =
      effective_batch(deployment, per_replica,
                      mean_decode_context(work.input_tokens, work.output_tokens, work.lengths.cv));
  if (batch.requests < 1.0) return bound;
  const StepPricer pricer(deployment);
  StepState state;
  state.requests = batch.requests;
  state.tokens_per_request = 1.0 + deployment.speculation.draft_tokens;
  state.context = mean_decode_context(work.input_tokens, work.output_tokens, work.lengths.cv);
  state.logits_rows = state.tokens();
  StepPrice price;
  pricer.price(state, price);
  std::map<OpFamily, double> floors;
  for (std::size_t i = 0; i < price.ops.size(); ++i) {
    floors[pricer.graph().ops[i].family] += price.ops[i].floor_seconds;
    bound.step_seconds += price.ops[i].floor_seconds;
  }
  const auto largest = std::max_element(floors.begin(), floors.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
  bound.largest_family = name_of(largest->first);
  bound.largest_share = largest->second / bound.step_seconds;
  const double replicas = std::min(deployment.replicas(), concurrency);
  bound.batch = batch.requests * replicas;
  bound.output_tokens_per_second =
      bound.batch * accept_length(deployment.speculation.acceptance) / bound.step_seconds;
  return bound;
}

TargetAnswer explain_target(const Deployment& deployment, double target) {
  TargetAnswer answer;
  answer.target_tokens_per_second = target;
  constexpr double kMostRequests = 65536.0;
  double previous_batch = 0.0;
  for (double concurrency = 1.0; concurrency <= kMostRequests; concurrency *= 2.0) {
    const RooflineBound bound = roofline_bound(deployment, concurrency);
    if (bound.batch <= previous_batch) break;  // a limit binds: more clients only queue
    previous_batch = bound.batch;
    const double predicted =
        closed_loop_throughput(deployment, concurrency).output_tokens_per_second;
    answer.bounds.push_back(bound);
    answer.predicted.push_back(predicted);
    if (!answer.physical_from && bound.output_tokens_per_second >= target) {
      answer.physical_from = concurrency;
    }
    if (!answer.predicted_from && predicted >= target) answer.predicted_from = concurrency;
  }
  return answer;
}

}  // namespace fulcrum
