// The memory ledger of one rank and the batch it allows (F13).
#pragma once

#include <string_view>

#include "model/deployment.h"
#include "model/kv_pools.h"
#include "model/units.h"

namespace fulcrum {

enum class BatchLimiter { kConcurrency, kMaxRunningRequests, kKvMemory, kWindowMemory };
std::string_view name_of(BatchLimiter limiter);

/// One rank's memory. SGLang: budget = weights + request_state + kv_pool, and the reserve and the
/// draft weights lie outside it. vLLM: the reserve and the draft weights come out of the budget.
struct MemoryLedger {
  Bytes capacity;  ///< device memory
  Bytes budget;    ///< memory_fraction of it
  Bytes weights;   ///< backbone, as resident
  Bytes draft_weights;
  Bytes request_state;  ///< HCA states allocated per request slot, whatever runs
  Bytes kv_pool;        ///< what is left of the budget for pages
  Bytes pool_bytes_per_token;
  PoolTokenBytes pool_token;   ///< SGLang: what one pool token holds
  double pool_tokens = 0.0;    ///< whole pages
  double window_tokens = 0.0;  ///< SGLang: tokens of the window pool
  ReserveBytes reserve;        ///< activations, graphs, workspaces the engine asks for
  Bytes outside_budget;        ///< capacity less budget
  Bytes admission_bytes;       ///< vLLM: per request besides its blocks
  double max_running_requests = 0.0;
  bool reserve_is_short = false;  ///< what must lie outside the budget exceeds what is there
  bool fits = false;              ///< weights leave room for at least one request
};

MemoryLedger memory_ledger(const Deployment& deployment);

/// vLLM: bytes a request holds in the sliding caches while `batched_tokens` of it are written. A
/// decoding request writes its 1 + drafts tokens; pages behind the window are given back.
Bytes vllm_held_bytes(const Deployment& deployment, double batched_tokens);

/// Requests that fit in the pools, each with `resident_tokens` of context; not a whole number for
/// averages below one page. Sets `limiter` to the pool that runs out first.
double requests_that_fit(const Deployment& deployment, const MemoryLedger& ledger,
                         double resident_tokens, BatchLimiter& limiter);

struct EffectiveBatch {
  double requests = 0.0;  ///< per replica
  BatchLimiter limiter = BatchLimiter::kConcurrency;
};

/// The batch really served when `concurrency` requests per replica are in flight, each resident
/// with `resident_tokens` on average.
EffectiveBatch effective_batch(const Deployment& deployment, double concurrency,
                               double resident_tokens);
/// The same with the deployment's ledger at hand.
EffectiveBatch effective_batch(const Deployment& deployment, const MemoryLedger& ledger,
                               double concurrency, double resident_tokens);

}  // namespace fulcrum
