// KV-cache bytes: per token of context by layer kind, and fixed per request.
// The cache is replicated on every tensor-parallel rank.
#pragma once

#include "model/model_config.h"
#include "model/units.h"

namespace fulcrum {

/// Row formats of the cache.
struct KvFormat {
  double main_row_bytes = 584.0;   ///< 448 FP8 + 64 BF16 + 7 UE8M0 + pad; window and pooled rows
  double index_row_bytes = 132.0;  ///< 128 FP8 + FP32 scale; 68 with the FP4 indexer
};
inline constexpr double kFp4IndexRowBytes = 68.0;

/// Bytes per token of context that one layer of `kind` keeps, amortised over its ratio.
Bytes kv_bytes_per_token(const ModelConfig& model, LayerKind kind, const KvFormat& format);

/// The same summed over the backbone's layers: 3850 B for V4-Flash (3514 with the FP4 indexer).
Bytes kv_bytes_per_token(const ModelConfig& model, const KvFormat& format);

/// Bytes a request holds whatever its context: window rows and FP32 compressor states.
struct RequestStateBytes {
  Bytes window;
  Bytes csa_state;
  Bytes indexer_state;
  Bytes hca_state;
  Bytes total() const { return window + csa_state + indexer_state + hca_state; }
};
/// `speculative` doubles the state rings and adds the draft layer's window.
RequestStateBytes request_state_bytes(const ModelConfig& model, const KvFormat& format,
                                      bool speculative);

}  // namespace fulcrum
