// The memory ledger of one rank and the batch it allows (F13).
#pragma once

#include <string_view>

#include "model/deployment.h"
#include "model/units.h"

namespace fulcrum {

enum class BatchLimiter { kConcurrency, kMaxRunningRequests, kKvMemory };
std::string_view name_of(BatchLimiter limiter);

struct MemoryLedger {
  Bytes capacity;  ///< device memory
  Bytes budget;    ///< memory_fraction of it
  Bytes weights;   ///< backbone, as resident
  Bytes draft_weights;
  Bytes request_state;  ///< compressor states of the running requests
  Bytes kv_pool;        ///< what is left of the budget for pages
  Bytes pool_bytes_per_token;
  double pool_tokens = 0.0;
  bool fits = false;  ///< weights leave room for at least one request
};

/// Ledger with states for `running_requests`.
MemoryLedger memory_ledger(const Deployment& deployment, double running_requests);

struct EffectiveBatch {
  double requests = 0.0;  ///< per replica
  BatchLimiter limiter = BatchLimiter::kConcurrency;
};

/// The batch really served when `concurrency` requests per replica are in flight, each resident
/// with `resident_tokens` on average.
EffectiveBatch effective_batch(const Deployment& deployment, double concurrency,
                               double resident_tokens);

}  // namespace fulcrum
