#include "model/serving_pool.h"

#include <algorithm>

#include "model/memory.h"

namespace fulcrum {

ServingPool serving_pool(const Deployment& deployment) {
  const MemoryLedger ledger = memory_ledger(deployment);
  ServingPool pool;
  if (!ledger.fits) return pool;
  pool.capacity_tokens = ledger.pool_tokens;
  pool.page_tokens = 256.0;  // both engines
  pool.max_running = deployment.engine.max_running_requests;
  if (deployment.engine.kind == EngineKind::kVllm) {
    // Sliding caches give back what a prompt needed: a decoding request holds its window and
    // states.
    KvFormat format;
    format.index_row_bytes = deployment.kernels.traits.index_row_bytes;
    const double drafts = deployment.speculation.draft_tokens;
    pool.fixed_tokens =
        vllm_admission(deployment.model, format, 1.0 + drafts, drafts > 0.0).total() /
        ledger.pool_bytes_per_token;
  } else {
    const SglangPoolRules rules;
    pool.max_running = std::min(
        pool.max_running, std::floor(ledger.window_tokens /
                                     sglang_window_tokens_per_request(deployment.model, rules)));
  }
  return pool;
}

}  // namespace fulcrum
