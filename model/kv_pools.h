// How serving engines carve the KV budget of one rank into pools (F4, F13).
#pragma once

#include "model/kv_cache.h"
#include "model/model_config.h"
#include "model/units.h"

namespace fulcrum {

/// Where SGLang keeps the HCA compressor states. Builds of June 2026 size them with the window
/// pool, one ring per 128 window tokens; later builds allocate one ring per request slot at start.
/// Source: pool_configurator.py of both months; the two pools logged in sglang PR 28620 give the
/// same budget within 0.3 % under the first rule only (tests/serving/memory_test.cpp).
enum class HcaStatePlacement { kPerRequestSlot, kPerPoolToken };

/// What SGLang's DSV4 configurator assumes. Sources: pool_configurator.py, server_args.py.
struct SglangPoolRules {
  double window_to_full_tokens = 0.1;  ///< swa_full_tokens_ratio, default of this model
  double page_tokens = 256.0;          ///< forced page size; pools hold whole pages
  HcaStatePlacement hca_state = HcaStatePlacement::kPerRequestSlot;
};

/// Bytes per pool token by what they hold; draft included (layers x (L+1)/L) under speculation.
struct PoolTokenBytes {
  Bytes window;      ///< window rows of all layers
  Bytes pooled;      ///< compressed rows, CSA and HCA
  Bytes index_keys;  ///< indexer keys, CSA
  Bytes csa_state;   ///< FP32 rings of CSA compressors and their indexers
  Bytes hca_state;   ///< FP32 rings of HCA compressors, when they are in the pool
  Bytes total() const { return window + pooled + index_keys + csa_state + hca_state; }
};
PoolTokenBytes sglang_pool_token(const ModelConfig& model, const KvFormat& format,
                                 const SglangPoolRules& rules, bool speculative);

/// HCA states of `max_running_requests` slots, allocated once: (slots + 1) rings, one ring and a
/// row more, in whole blocks of 128 rows. Zero when they are in the pool.
Bytes sglang_hca_state_bytes(const ModelConfig& model, const SglangPoolRules& rules,
                             double max_running_requests, bool speculative);

/// Window tokens a decoding request pins: its window, and the page it is writing.
double sglang_window_tokens_per_request(const ModelConfig& model, const SglangPoolRules& rules);

/// What SGLang leaves outside its static fraction by its own rule (server_args.py): metadata,
/// activations of one prefill chunk, CUDA graphs, parallel workspaces, 2 GiB more with a draft
/// model; at least 10 GiB on devices above 60 GiB.
struct ReserveBytes {
  Bytes metadata;
  Bytes activations;
  Bytes graphs;
  Bytes parallel;
  Bytes draft;
  Bytes minimum;  ///< what lifts the sum to the 10 GiB
  Bytes total() const { return metadata + activations + graphs + parallel + draft + minimum; }
};
ReserveBytes sglang_reserve(double chunked_prefill_tokens, double graph_requests,
                            int tensor_parallel, bool speculative, Bytes capacity);

/// vLLM's paged cache of this model: every page is padded to 576 B, a block covers 256 tokens, and
/// layers of one kind are allocated in groups of ceil(sliding layers / 2), so that CSA layers are
/// rounded up to a group. Reproduces the 1 039 680 B per block of a public log (facts section 4);
/// the grouping is inferred from that figure.
inline constexpr double kVllmBlockTokens = 256.0;
Bytes vllm_block_bytes(const ModelConfig& model, const KvFormat& format);

/// What admission bills one request besides its blocks: window pages, and FP32 compressor states
/// kept as sliding-window caches, each for its window - 1 + `max_batched_tokens` tokens.
struct VllmAdmission {
  Bytes window;
  Bytes states;
  Bytes total() const { return window + states; }
};
VllmAdmission vllm_admission(const ModelConfig& model, const KvFormat& format,
                             double max_batched_tokens, bool speculative);

}  // namespace fulcrum
