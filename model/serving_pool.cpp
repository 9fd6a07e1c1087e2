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
    // Each decoding request holds a window; one at a time holds what writing its prompt needs.
    const double prompt = std::min<double>(deployment.engine.chunked_prefill_tokens,
                                           deployment.workload.input_tokens);
    pool.fixed_tokens = vllm_held_bytes(deployment, 1.0 + deployment.speculation.draft_tokens) /
                        ledger.pool_bytes_per_token;
    const double writing = vllm_held_bytes(deployment, prompt) / ledger.pool_bytes_per_token;
    pool.capacity_tokens -= std::max(0.0, writing - pool.fixed_tokens);
  } else {
    const SglangPoolRules rules;
    pool.max_running = std::min(
        pool.max_running, std::floor(ledger.window_tokens /
                                     sglang_window_tokens_per_request(deployment.model, rules)));
  }
  return pool;
}

}  // namespace fulcrum
