#include "model/memory.h"

#include <algorithm>
#include <cmath>

#include "model/weights.h"

namespace fulcrum {
namespace {

constexpr double kMebi = 1024.0 * 1024.0;

SglangPoolRules rules_of(const Deployment& deployment) {
  SglangPoolRules rules;
  rules.window_to_full_tokens = deployment.engine.window_to_full_tokens;
  rules.hca_state = deployment.kernels.traits.hca_state;
  return rules;
}

double round_down(double x, double step) { return std::floor(x / step) * step; }
double round_up(double x, double step) { return std::ceil(x / step) * step; }

void fill_sglang(const Deployment& deployment, const KvFormat& format, bool speculative,
                 MemoryLedger& ledger) {
  const SglangPoolRules rules = rules_of(deployment);
  // The target's pools are sized before the draft model loads: its weights come out of the reserve.
  ledger.request_state =
      sglang_hca_state_bytes(deployment.model, rules, ledger.max_running_requests, speculative);
  const Bytes left = ledger.budget - ledger.weights - ledger.request_state;
  ledger.kv_pool = std::max(Bytes(0.0), left);
  ledger.pool_token = sglang_pool_token(deployment.model, format, rules, speculative);
  ledger.pool_bytes_per_token = ledger.pool_token.total();
  ledger.pool_tokens = round_down(ledger.kv_pool / ledger.pool_bytes_per_token, rules.page_tokens);
  ledger.window_tokens =
      round_down(ledger.pool_tokens * rules.window_to_full_tokens, rules.page_tokens);
  ledger.fits = ledger.window_tokens >= sglang_window_tokens_per_request(deployment.model, rules);
  const Bytes needed = ledger.reserve.total() - ledger.reserve.draft +
                       std::max(ledger.reserve.draft, ledger.draft_weights);
  ledger.reserve_is_short = ledger.outside_budget < needed;
}

void fill_vllm(const Deployment& deployment, const KvFormat& format, bool speculative,
               MemoryLedger& ledger) {
  const Bytes used = ledger.weights + ledger.draft_weights + ledger.reserve.total();
  ledger.kv_pool = std::max(Bytes(0.0), ledger.budget - used);
  ledger.pool_bytes_per_token = vllm_block_bytes(deployment.model, format) / kVllmBlockTokens;
  ledger.pool_tokens = round_down(ledger.kv_pool / ledger.pool_bytes_per_token, kVllmBlockTokens);
  ledger.admission_bytes = vllm_admission(deployment.model, format,
                                          deployment.engine.chunked_prefill_tokens, speculative)
                               .total();
  ledger.fits =
      ledger.kv_pool >= ledger.admission_bytes + vllm_block_bytes(deployment.model, format);
}

}  // namespace

std::string_view name_of(BatchLimiter limiter) {
  constexpr std::string_view kNames[] = {"concurrency", "max_running_requests", "kv_memory",
                                         "window_memory"};
  return kNames[static_cast<int>(limiter)];
}

MemoryLedger memory_ledger(const Deployment& deployment) {
  const EngineSettings& engine = deployment.engine;
  const bool speculative = deployment.speculation.draft_tokens > 0;
  WeightLayout layout;
  layout.tensor_parallel = deployment.tensor_parallel;
  layout.wo_a_bf16 = deployment.kernels.traits.wo_a_bf16;
  layout.mxfp4_scales_as_fp32 = deployment.kernels.traits.mxfp4_scales_as_fp32;
  layout.load_mtp = speculative;
  const WeightBytes weights = rank_bytes(deployment.model, layout);
  KvFormat format;
  format.index_row_bytes = deployment.kernels.traits.index_row_bytes;

  MemoryLedger ledger;
  ledger.capacity = Bytes(deployment.hardware.memory_capacity_mib.value * kMebi);
  ledger.budget = ledger.capacity * engine.memory_fraction;
  ledger.outside_budget = ledger.capacity - ledger.budget;
  ledger.weights = weights.backbone();
  ledger.draft_weights = weights.of(WeightComponent::kMtp);
  ledger.max_running_requests = engine.max_running_requests;
  const double tokens_per_request = 1.0 + deployment.speculation.draft_tokens;
  const double graph_requests =
      engine.cuda_graph ? std::floor(engine.graph_capture_max_tokens / tokens_per_request) : 0.0;
  ledger.reserve = sglang_reserve(engine.chunked_prefill_tokens, graph_requests,
                                  deployment.tensor_parallel, speculative, ledger.capacity);
  if (engine.kind == EngineKind::kSglang) {
    fill_sglang(deployment, format, speculative, ledger);
  } else {
    // vLLM measures its peak instead of estimating it, and has no floor under the estimate.
    ledger.reserve.minimum = Bytes(0.0);
    ledger.reserve.draft = Bytes(0.0);
    fill_vllm(deployment, format, speculative, ledger);
  }
  return ledger;
}

Bytes vllm_held_bytes(const Deployment& deployment, double batched_tokens) {
  KvFormat format;
  format.index_row_bytes = deployment.kernels.traits.index_row_bytes;
  return vllm_admission(deployment.model, format, batched_tokens,
                        deployment.speculation.draft_tokens > 0)
      .total();
}

double requests_that_fit(const Deployment& deployment, const MemoryLedger& ledger,
                         double resident_tokens, BatchLimiter& limiter) {
  limiter = BatchLimiter::kKvMemory;
  if (!ledger.fits) return 0.0;
  if (deployment.engine.kind == EngineKind::kVllm) {
    // Sliding caches give pages back once a prompt is written: one request at a time holds what its
    // prefill needs, the others a window.
    const Bytes blocks = ledger.pool_bytes_per_token * round_up(resident_tokens, kVllmBlockTokens);
    const double batched =
        std::min<double>(deployment.engine.chunked_prefill_tokens, resident_tokens);
    const Bytes others = ledger.kv_pool - vllm_held_bytes(deployment, batched) - blocks;
    if (others < Bytes(0.0)) return 0.0;
    const double decoding = 1.0 + deployment.speculation.draft_tokens;
    return 1.0 + std::floor(others / (vllm_held_bytes(deployment, decoding) + blocks));
  }
  const SglangPoolRules rules = rules_of(deployment);
  const double by_context =
      std::floor(ledger.pool_tokens / round_up(resident_tokens, rules.page_tokens));
  const double by_window = std::floor(
      ledger.window_tokens / std::min(sglang_window_tokens_per_request(deployment.model, rules),
                                      round_up(resident_tokens, rules.page_tokens)));
  if (by_window < by_context) limiter = BatchLimiter::kWindowMemory;
  return std::min(by_context, by_window);
}

EffectiveBatch effective_batch(const Deployment& deployment, double concurrency,
                               double resident_tokens) {
  return effective_batch(deployment, memory_ledger(deployment), concurrency, resident_tokens);
}

EffectiveBatch effective_batch(const Deployment& deployment, const MemoryLedger& ledger,
                               double concurrency, double resident_tokens) {
  EffectiveBatch batch{concurrency, BatchLimiter::kConcurrency};
  if (deployment.engine.max_running_requests < batch.requests) {
    batch = {static_cast<double>(deployment.engine.max_running_requests),
             BatchLimiter::kMaxRunningRequests};
  }
  BatchLimiter pool = BatchLimiter::kKvMemory;
  const double by_memory = requests_that_fit(deployment, ledger, resident_tokens, pool);
  if (by_memory < batch.requests) batch = {by_memory, pool};
  return batch;
}

}  // namespace fulcrum
