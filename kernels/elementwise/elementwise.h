// The small row-wise operations of a decode step. Pointers are device pointers for the kernels and
// host pointers for the references. BF16 and E4M3 are passed as their bits.
#pragma once

#include <cstdint>

#include "kernels/attention/kv_row.h"
#include "kernels/common/claim.h"

namespace fulcrum::kernels {

// out[t,:] = in[t,:] / sqrt(mean(in[t,:]^2) + epsilon) * weight.   Dimension: multiple of 8, <=
// 16384.
struct RmsNormProblem {
  std::int32_t num_rows = 0;
  std::int32_t dim = 0;
  float epsilon = 1e-6F;
  const std::uint16_t* in = nullptr;      // BF16 [rows, dim]
  const std::uint16_t* weight = nullptr;  // BF16 [dim]; null = ones
  std::uint16_t* out = nullptr;           // BF16 [rows, dim]
};
Claim rms_norm_claim(std::int32_t num_rows, std::int32_t dim, bool has_weight);

// Rotary position of the last 64 dimensions of a head: adjacent values form a complex number that
// is multiplied by (cos, sin) of the token's position. The table carries whatever scaling (yarn)
// applies.
struct RopeTable {
  const float* cos_sin = nullptr;           // [positions, 32, 2]
  const std::int32_t* positions = nullptr;  // [tokens]
};

// Every query head: RMSNorm without weight over 512, then rotary position on the last 64.
struct QueryNormRopeProblem {
  std::int32_t num_tokens = 0;
  std::int32_t num_heads = 0;
  float epsilon = 1e-6F;
  const std::uint16_t* in = nullptr;  // BF16 [tokens, heads, 512]
  RopeTable rope;
  std::uint16_t* out = nullptr;  // BF16 [tokens, heads, 512]; may be `in`
};
Claim query_norm_rope_claim(std::int32_t num_tokens, std::int32_t num_heads);

// The attention output is rotated back (by the conjugate) in place; only the last 64 values of a
// head move.
struct InverseRopeProblem {
  std::int32_t num_tokens = 0;
  std::int32_t num_heads = 0;
  RopeTable rope;
  std::uint16_t* heads = nullptr;  // BF16 [tokens, heads, 512]
};
Claim inverse_rope_claim(std::int32_t num_tokens, std::int32_t num_heads);

// RMSNorm with weight over 512, rotary position, quantisation and store of one 584-byte row per
// token.
struct KvStoreProblem {
  std::int32_t num_tokens = 0;
  float epsilon = 1e-6F;
  const std::uint16_t* in = nullptr;      // BF16 [tokens, 512]
  const std::uint16_t* weight = nullptr;  // BF16 [512]
  RopeTable rope;
  const std::int32_t* rows = nullptr;  // [tokens], row of the pool; negative = do not store
  KvPool pool;
};
Claim kv_store_claim(std::int32_t num_tokens);

// E4M3 codes with one scale per 128 values along a row: scale = max(amax, 1e-4) / 448, rounded up
// to a power of two when `scales_e8m0` is given; code = in / scale. Exactly one of the two scale
// outputs is non-null.
struct GroupQuantizeProblem {
  std::int32_t num_rows = 0;
  std::int32_t dim = 0;                 // multiple of 128
  const std::uint16_t* in = nullptr;    // BF16 [rows, dim]
  std::uint8_t* codes = nullptr;        // E4M3 [rows, dim]
  float* scales = nullptr;              // [rows, dim / 128]
  std::uint8_t* scales_e8m0 = nullptr;  // [rows, dim / 128]
};
inline constexpr int kQuantizeGroup = 128;
Claim group_quantize_claim(std::int32_t num_rows, std::int32_t dim, bool e8m0_scales);

// out = silu(min(gate, limit)) * clamp(up, -limit, limit); gate and up are the halves of a row.
struct SwigluProblem {
  std::int32_t num_rows = 0;
  std::int32_t width = 0;             // of one half; multiple of 8
  float limit = 10.0F;                // infinity = no clamp
  const std::uint16_t* in = nullptr;  // BF16 [rows, 2 * width]
  std::uint16_t* out = nullptr;       // BF16 [rows, width]
};
Claim swiglu_claim(std::int32_t num_rows, std::int32_t width);

// Measures what the memory system streams: `copy` moves `num_bytes` from in to out, `read` only
// reads them (and stores one word per block if the checksum hits `never`, which random data do with
// chance 2^-32).
struct StreamProblem {
  std::int64_t num_bytes = 0;  // multiple of 16
  const void* in = nullptr;
  void* out = nullptr;  // num_bytes for copy, at least 4 bytes for read
};
Claim stream_read_claim(std::int64_t num_bytes);
Claim stream_copy_claim(std::int64_t num_bytes);

}  // namespace fulcrum::kernels
