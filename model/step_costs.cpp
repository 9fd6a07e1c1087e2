#include "model/step_costs.h"

#include <algorithm>
#include <cmath>

namespace fulcrum {

StepCosts::StepCosts(const Deployment& deployment)
    : pricer_(deployment), tokens_per_request_(1.0 + deployment.speculation.draft_tokens) {}

const StepCosts::Decode& StepCosts::decode(int requests, double mean_context) {
  const auto batch = static_cast<std::size_t>(requests);
  const auto bucket = static_cast<std::size_t>(mean_context / kContextBucket);
  if (decode_.size() <= batch) decode_.resize(batch + 1);
  std::vector<Decode>& row = decode_[batch];
  if (row.size() <= bucket) row.resize(bucket + 1);
  Decode& entry = row[bucket];
  if (entry.seconds == 0.0) {
    StepState state;
    state.requests = requests;
    state.tokens_per_request = tokens_per_request_;
    state.context = (static_cast<double>(bucket) + 0.5) * kContextBucket;
    state.logits_rows = state.tokens();
    pricer_.price(state, price_);
    entry.seconds = price_.total_seconds();
    for (std::size_t i = 0; i < price_.ops.size(); ++i) {
      const OpFamily family = pricer_.graph().ops[i].family;
      if (family == OpFamily::kAttention || family == OpFamily::kIndexer) {
        entry.attention_seconds += price_.ops[i].seconds;
      }
    }
  }
  return entry;
}

double StepCosts::decode_seconds(int requests, double mean_context) {
  return decode(requests, mean_context).seconds;
}

double StepCosts::prefill_seconds(double tokens, double mean_context) {
  const double rounded = std::ceil(tokens / kTokenBucket) * kTokenBucket;
  const auto bucket = static_cast<std::uint64_t>(mean_context / kContextBucket);
  const std::uint64_t key = static_cast<std::uint64_t>(rounded) << 32 | bucket;
  const auto [it, is_new] = prefill_.try_emplace(key, 0.0);
  if (is_new) {
    StepState state;
    state.tokens_per_request = rounded;
    state.context = (static_cast<double>(bucket) + 0.5) * kContextBucket;
    state.prefill = true;
    pricer_.price(state, price_);
    it->second = price_.total_seconds();
  }
  return it->second;
}

double StepCosts::mixed_seconds(double prefill_tokens, double prefill_context, int requests,
                                double mean_context) {
  if (requests == 0) return prefill_seconds(prefill_tokens, prefill_context);
  return prefill_seconds(prefill_tokens + requests * tokens_per_request_, prefill_context) +
         decode(requests, mean_context).attention_seconds;
}

}  // namespace fulcrum
