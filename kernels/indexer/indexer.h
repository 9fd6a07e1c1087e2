// The sparse-attention indexer: scores every compressed key of a request and keeps the best.
//
//   logit[t, j] = key_scale[j] * sum_h weight[t, h] * relu(q[t, h] . key[j])      h < 64 heads of
//   128
//
// Keys are E4M3 with one binary32 scale (132 bytes): in a page the 128-byte codes of all rows come
// first, then their scales, as SGLang's and DeepGEMM's paged caches lay them out. A query's scale
// is folded in its weights.
#pragma once

#include <cstdint>

#include "kernels/common/claim.h"
#include "kernels/elementwise/elementwise.h"

namespace fulcrum::kernels {

inline constexpr int kIndexHeads = 64;
inline constexpr int kIndexDim = 128;
inline constexpr int kIndexRopeValues = 64;  // the last ones
inline constexpr int kIndexKeyBytes = kIndexDim + 4;
inline constexpr int kIndexPageRowsLog2 = 6;
inline constexpr int kIndexPageRows = 1 << kIndexPageRowsLog2;

// page_stride_bytes is a multiple of 16, `pages` 16-byte aligned.
struct IndexPool {
  std::uint8_t* pages = nullptr;
  std::int64_t page_stride_bytes = std::int64_t{kIndexKeyBytes} * kIndexPageRows;
};
constexpr std::int64_t index_code_offset(const IndexPool& pool, std::int32_t row) {
  return (row >> kIndexPageRowsLog2) * pool.page_stride_bytes +
         std::int64_t{row & (kIndexPageRows - 1)} * kIndexDim;
}
constexpr std::int64_t index_scale_offset(const IndexPool& pool, std::int32_t row) {
  return (row >> kIndexPageRowsLog2) * pool.page_stride_bytes +
         std::int64_t{kIndexDim} * kIndexPageRows + std::int64_t{row & (kIndexPageRows - 1)} * 4;
}

struct IndexLogitsProblem {
  std::int32_t num_tokens = 0;
  std::int32_t max_keys = 0;            // row length of `logits`, multiple of 64
  const std::uint8_t* query = nullptr;  // E4M3 [tokens, 64, 128]
  const float* weights = nullptr;       // [tokens, 64]
  IndexPool pool;
  const std::int32_t* page_table = nullptr;  // [tokens, max_keys / 64], page of key j at j / 64
  const std::int32_t* key_counts = nullptr;  // [tokens], <= max_keys
  float* logits = nullptr;  // [tokens, max_keys]; positions >= key_counts are not written
};
// `keys_per_token` really scored keys.
Claim index_logits_claim(std::int32_t num_tokens, double keys_per_token);

// The top_k largest of every row, in no particular order; which of equal values is kept is not
// determined.
struct TopKProblem {
  std::int32_t num_tokens = 0;
  std::int32_t max_keys = 0;  // row length
  std::int32_t top_k = 512;
  const float* logits = nullptr;             // [tokens, max_keys], no NaN; 16-byte aligned
  const std::int32_t* key_counts = nullptr;  // [tokens]
  std::int32_t* indices = nullptr;  // [tokens, top_k]; filled up with -1 where there are fewer keys
};
Claim top_k_claim(std::int32_t num_tokens, double keys_per_token, std::int32_t top_k);

// Query side: rotary position on the last 64 values, Hadamard rotation (orthonormal), E4M3 with one
// scale per head; out_weights = in_weights * scale * factor.
struct IndexQueryProblem {
  std::int32_t num_tokens = 0;
  float factor = 0.0F;                // 1 / sqrt(64 heads * 128)
  const std::uint16_t* in = nullptr;  // BF16 [tokens, 64, 128]
  const float* in_weights = nullptr;  // [tokens, 64]
  RopeTable rope;                     // 32 pairs per position
  std::uint8_t* query = nullptr;      // E4M3 [tokens, 64, 128]
  float* out_weights = nullptr;       // [tokens, 64]
};
Claim index_query_claim(std::int32_t num_tokens);

}  // namespace fulcrum::kernels
