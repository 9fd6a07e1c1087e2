#include "model/memory.h"

#include <algorithm>
#include <cmath>

#include "model/kv_cache.h"
#include "model/weights.h"

namespace fulcrum {
namespace {

/// SGLang's default ratio of window tokens to full tokens for this model (pool_configurator.py).
constexpr double kSwaFullTokensRatio = 0.1;

KvFormat kv_format(const Deployment& deployment) {
  KvFormat format;
  format.index_row_bytes = deployment.kernels.traits.index_row_bytes;
  return format;
}

}  // namespace

std::string_view name_of(BatchLimiter limiter) {
  constexpr std::string_view kNames[] = {"concurrency", "max_running_requests", "kv_memory"};
  return kNames[static_cast<int>(limiter)];
}

MemoryLedger memory_ledger(const Deployment& deployment, double running_requests) {
  const bool speculative = deployment.speculation.draft_tokens > 0;
  WeightLayout layout;
  layout.tensor_parallel = deployment.tensor_parallel;
  layout.wo_a_bf16 = deployment.kernels.traits.wo_a_bf16;
  layout.mxfp4_scales_as_fp32 = deployment.kernels.traits.mxfp4_scales_as_fp32;
  layout.load_mtp = speculative;
  const WeightBytes weights = rank_bytes(deployment.model, layout);
  const KvFormat format = kv_format(deployment);

  MemoryLedger ledger;
  constexpr double kMebi = 1024.0 * 1024.0;
  ledger.capacity = Bytes(deployment.hardware.memory_capacity_mib.value * kMebi);
  ledger.budget = ledger.capacity * deployment.engine.memory_fraction;
  ledger.weights = weights.backbone();
  ledger.draft_weights = weights.of(WeightComponent::kMtp);
  // The HCA state is held per running request; window, CSA and indexer states are in pool pages.
  ledger.request_state =
      request_state_bytes(deployment.model, format, speculative).hca_state * running_requests;
  const Bytes left = ledger.budget - ledger.weights - ledger.draft_weights - ledger.request_state;
  ledger.kv_pool = std::max(Bytes(0.0), left);
  ledger.pool_bytes_per_token =
      sglang_pool_bytes_per_token(deployment.model, format, kSwaFullTokensRatio, speculative);
  ledger.pool_tokens = ledger.kv_pool / ledger.pool_bytes_per_token;
  ledger.fits = left > Bytes(0.0) && ledger.pool_tokens >= deployment.model.window;
  return ledger;
}

EffectiveBatch effective_batch(const Deployment& deployment, double concurrency,
                               double resident_tokens) {
  EffectiveBatch batch{concurrency, BatchLimiter::kConcurrency};
  if (deployment.engine.max_running_requests < batch.requests) {
    batch = {static_cast<double>(deployment.engine.max_running_requests),
             BatchLimiter::kMaxRunningRequests};
  }
  const double by_memory =
      std::floor(memory_ledger(deployment, batch.requests).pool_tokens / resident_tokens);
  if (by_memory < batch.requests) batch = {by_memory, BatchLimiter::kKvMemory};
  return batch;
}

}  // namespace fulcrum
