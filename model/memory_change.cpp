#include "model/memory_change.h"

#include <algorithm>
#include <cmath>

#include "model/closed_loop_regimes.h"

namespace fulcrum {
namespace {

double resident_tokens(const Deployment& deployment) {
  const Workload& work = deployment.workload;
  return mean_decode_context(work.input_tokens, work.output_tokens, work.lengths.cv);
}

/// Bytes one pool token holds of each kind; vLLM's block is one entry.
std::vector<LedgerCause> token_entries(const MemoryLedger& ledger) {
  const PoolTokenBytes& token = ledger.pool_token;
  const double rest = (ledger.pool_bytes_per_token - token.total()).value();
  return {{"window rows a token", token.window.value()},
          {"pooled rows a token", token.pooled.value()},
          {"index keys a token", token.index_keys.value()},
          {"CSA states a token", token.csa_state.value()},
          {"HCA states a token", token.hca_state.value()},
          {"KV blocks", std::max(0.0, rest)}};
}

/// What the pool is made of, with its sign.
std::vector<LedgerCause> pool_entries(const Deployment& deployment, const MemoryLedger& ledger) {
  std::vector<LedgerCause> entries{{"memory fraction", ledger.budget.value()},
                                   {"weights", -ledger.weights.value()},
                                   {"state of request slots", -ledger.request_state.value()}};
  if (deployment.engine.kind == EngineKind::kVllm) {
    entries.push_back({"draft weights", -ledger.draft_weights.value()});
    entries.push_back({"activations, graphs", -ledger.reserve.total().value()});
  }
  return entries;
}

/// What a decoding request holds besides its context's blocks: nothing in SGLang's pools, window
/// and states in vLLM's.
Bytes held_bytes(const Deployment& deployment) {
  if (deployment.engine.kind == EngineKind::kSglang) return Bytes(0.0);
  KvFormat format;
  format.index_row_bytes = deployment.kernels.traits.index_row_bytes;
  const double drafts = deployment.speculation.draft_tokens;
  return vllm_admission(deployment.model, format, 1.0 + drafts, drafts > 0.0).total();
}

/// ln(after / before) of a sum, shared out by each term's part of the change.
void share_out(const std::vector<LedgerCause>& before, const std::vector<LedgerCause>& after,
               double sign, std::vector<LedgerCause>& causes) {
  double from = 0.0;
  double to = 0.0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    from += before[i].factor;
    to += after[i].factor;
  }
  if (from <= 0.0 || to <= 0.0 || from == to) return;
  const double log_ratio = sign * std::log(to / from);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double part = (after[i].factor - before[i].factor) / (to - from);
    if (part != 0.0) causes.push_back({before[i].entry, std::exp(part * log_ratio)});
  }
}

}  // namespace

bool BatchChange::by_memory() const {
  const auto is_memory = [](BatchLimiter limiter) {
    return limiter == BatchLimiter::kKvMemory || limiter == BatchLimiter::kWindowMemory;
  };
  return is_memory(before.limiter) || is_memory(after.limiter);
}

BatchChange explain_batch(const Deployment& before, const Deployment& after, double concurrency) {
  BatchChange change;
  change.concurrency = concurrency;
  const MemoryLedger a = memory_ledger(before);
  const MemoryLedger b = memory_ledger(after);
  const double resident_a = resident_tokens(before);
  const double resident_b = resident_tokens(after);
  const auto per_replica = [&](const Deployment& deployment) {
    return concurrency / std::min(deployment.replicas(), concurrency);
  };
  change.before = effective_batch(before, a, per_replica(before), resident_a);
  change.after = effective_batch(after, b, per_replica(after), resident_b);
  if (!a.fits || !b.fits || before.engine.kind != after.engine.kind) return change;
  const double held_a = held_bytes(before).value();
  const double held_b = held_bytes(after).value();
  change.fits_before = a.kv_pool.value() / (a.pool_bytes_per_token.value() * resident_a + held_a);
  change.fits_after = b.kv_pool.value() / (b.pool_bytes_per_token.value() * resident_b + held_b);
  share_out(pool_entries(before, a), pool_entries(after, b), 1.0, change.causes);
  // A request: its resident tokens at each kind's bytes, what it holds besides, and where the
  // lengths differ a term of their own.
  std::vector<LedgerCause> request_a = token_entries(a);
  std::vector<LedgerCause> request_b = token_entries(b);
  for (LedgerCause& entry : request_a) entry.factor *= resident_a;
  for (LedgerCause& entry : request_b) entry.factor *= resident_a;
  request_a.push_back({"window and states of a request", held_a});
  request_b.push_back({"window and states of a request", held_b});
  request_a.push_back({"context of a request", 0.0});
  request_b.push_back(
      {"context of a request", b.pool_bytes_per_token.value() * (resident_b - resident_a)});
  share_out(request_a, request_b, -1.0, change.causes);
  std::stable_sort(change.causes.begin(), change.causes.end(), [](const auto& x, const auto& y) {
    return std::abs(std::log(x.factor)) > std::abs(std::log(y.factor));
  });
  return change;
}

}  // namespace fulcrum
