// Sparse multi-head latent attention of one decode step: every query attends to the rows of its
// sliding window and to a selected set of compressed rows, with one learned sink per head.
//
//   score[h,r] = scale * q[h] . kv[r]        kv[r] = the dequantised 512-wide row, K and V alike
//   out[h]     = sum_r exp(score[h,r]) kv[r] / (exp(sink[h]) + sum_r exp(score[h,r]))
//
// Two implementations with the same contract: `row loop` (CUDA cores, one block per token and head,
// the shape of the June 2026 fallback kernel) and `split-K` (tensor cores, heads share the rows).
#pragma once

#include <cstdint>

#include "kernels/attention/kv_row.h"
#include "kernels/common/claim.h"

namespace fulcrum::kernels {

struct SparseMlaShape {
  std::int32_t num_tokens = 0;    // query positions: requests x (1 + drafts)
  std::int32_t num_heads = 0;     // heads as laid out in memory, padding included; multiple of 16
  std::int32_t window_width = 0;  // row slots per token in window_rows (128)
  std::int32_t compressed_width =
      0;  // row slots per token in compressed_rows (512, or context / 128)
};

// Pointers are device pointers for the kernels and host pointers for the reference. The split-K
// kernel takes rows whose scales are at most 2^7 (values up to 57344).
struct SparseMlaProblem {
  SparseMlaShape shape;
  const std::uint16_t* query = nullptr;  // BF16 [tokens, heads, 512]
  KvPool window;
  KvPool compressed;
  const std::int32_t* window_rows = nullptr;        // [tokens, window_width]; negative = no row
  const std::int32_t* window_counts = nullptr;      // [tokens], slots in use, <= window_width
  const std::int32_t* compressed_rows = nullptr;    // [tokens, compressed_width]; negative = no row
  const std::int32_t* compressed_counts = nullptr;  // [tokens]
  const float* sink = nullptr;                      // [heads], added to the softmax denominator
  float softmax_scale = 0.0F;
  std::uint16_t* out = nullptr;  // BF16 [tokens, heads, 512]
  float* workspace = nullptr;    // sparse_mla_workspace_floats(...) floats
};

inline constexpr int kSparseMlaMaxSplits = 64;

// How the split-K kernel cuts the work. heads_per_block is 16 or 64, num_splits <=
// kSparseMlaMaxSplits. (32 was slower than one of them at every batch and head count tried.)
struct SparseMlaPlan {
  std::int32_t heads_per_block = 0;
  std::int32_t num_splits = 0;
};

// Chooses head tile and split count so that one wave of blocks covers the device: the largest head
// tile (rows shared by most heads) that still leaves a block per SM when every tile of 32 rows is a
// split, else the smallest. `shared_bytes_per_block` is the opt-in limit,
// `shared_bytes_per_sm` the capacity of one SM.
SparseMlaPlan plan_sparse_mla(const SparseMlaShape& shape, int num_sms, int shared_bytes_per_block,
                              int shared_bytes_per_sm);

// The same for the Hopper kernel, whose tiles have 64 rows and whose splits form a cluster of at
// most kSparseMlaSm90MaxSplits blocks (eight is what every device grants). With 16 heads two blocks
// share an SM.
inline constexpr int kSparseMlaSm90MaxSplits = 8;
SparseMlaPlan plan_sparse_mla_sm90(const SparseMlaShape& shape, int num_sms);

// Shared memory of one split-K block of eight warps and tiles of 32 rows: dequantised rows, scores
// of every warp, weights, two stages of raw rows, scale words and row numbers, and two floats per
// head. Asserted against the kernel's own struct.
constexpr int sparse_mla_split_k_shared_bytes(int heads_per_block) {
  constexpr int kWarps = 8;
  constexpr int kTileRows = 32;
  constexpr int kStages = 2;
  const int per_head = kWarps * 4 * kTileRows + 2 * (kTileRows + 8) + 2 * 4;
  return heads_per_block * per_head + kWarps * kTileRows * 2 * (kKvScaleGroup + 8) +
         kStages * kTileRows * ((kWarps + 1) * kKvScaleGroup + kWarps * 2 * 4);
}

// Floats of partial outputs and log-sum-exps for `num_splits` partial results per token and head.
// The row loop always uses two (window, compressed).
std::int64_t sparse_mla_workspace_floats(const SparseMlaShape& shape, std::int32_t num_splits);

// Compulsory traffic and arithmetic when `rows_per_token` rows are really attended: each row, query
// and output once. 4 x 512 FLOP per row and head (scores and values).
Claim sparse_mla_claim(const SparseMlaShape& shape, double rows_per_token);

// What the row loop asks of the cache hierarchy: it reads the rows once per head, and computes over
// the padded width whatever the counts are.
Claim sparse_mla_row_loop_claim(const SparseMlaShape& shape, double rows_per_token);

}  // namespace fulcrum::kernels
