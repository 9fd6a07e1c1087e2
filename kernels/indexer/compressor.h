// The compressor of one layer: every token leaves its projected value and gate in a per-request
// ring; every ratio-th token pools the ring into one row.
//
//   score[p] = gate[p] + ape[p mod ratio]
//   row = sum_p softmax_p(score[p]) value[p]   per dimension, over the ratio positions of the
//   group, and, with
//         overlap, also over the ratio positions before it. With overlap a token carries two
//         values: the first half of its projection is used by the group after its own, the second
//         by its own.
//   row -> RMSNorm with weight -> rotary position of the group's first token -> quantise -> store,
//   as a 584-byte row (dimension 512) or, Hadamard-rotated, as a 132-byte index key (dimension
//   128).
#pragma once

#include <cstdint>

#include "kernels/attention/kv_row.h"
#include "kernels/common/claim.h"
#include "kernels/indexer/indexer.h"

namespace fulcrum::kernels {

enum class CompressedRow { kAttention, kIndexKey };

struct CompressorShape {
  std::int32_t num_requests = 0;
  std::int32_t tokens_per_request = 1;  // consecutive positions: 1 + drafts
  std::int32_t ratio = 4;               // 4 or 128
  bool overlap = true;
  std::int32_t ring_rows = 8;  // >= (overlap ? 2 : 1) * ratio
  CompressedRow kind = CompressedRow::kAttention;
};

constexpr int compressor_dim(CompressedRow kind) {
  return kind == CompressedRow::kAttention ? kKvHeadDim : kIndexDim;
}
// Floats a token carries of each of value and gate.
constexpr int compressor_width(const CompressorShape& shape) {
  return (shape.overlap ? 2 : 1) * compressor_dim(shape.kind);
}

struct CompressorProblem {
  CompressorShape shape;
  float epsilon = 1e-6F;
  const float* projected = nullptr;  // [requests, tokens, 2 (value, gate), width]
  const float* ape = nullptr;        // [ratio, width]
  const std::int32_t* first_positions =
      nullptr;  // [requests], position of the request's first token here
  const std::int32_t* state_slots = nullptr;  // [requests]
  float* value_ring = nullptr;  // [slots, ring_rows, width], position p in row p mod ring_rows
  float* score_ring = nullptr;  // the same
  const std::uint16_t* norm_weight = nullptr;  // BF16 [dim]
  const float* cos_sin = nullptr;              // [positions, 32, 2]
  const std::int32_t* rows =
      nullptr;           // [requests, tokens], pool row for a token that closes a group
  KvPool pool;           // kAttention
  IndexPool index_pool;  // kIndexKey
};

// `rows_per_request`: how many of a request's tokens close a group (at most tokens_per_request).
Claim compressor_claim(const CompressorShape& shape, double rows_per_request);

}  // namespace fulcrum::kernels
