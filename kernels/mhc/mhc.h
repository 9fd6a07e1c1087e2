// Manifold-constrained hyper-connections: the residual is four streams of 4096 values. Before a
// sub-layer the streams are mixed into one input; after it, its output and the mixed streams form
// the next residual.
//
//   mix   = fn . x / rms(x)                          x = the 16384 values of a token, fn [24,
//   16384] pre_i = sigmoid(mix[i] s0 + base[i]) + eps       i = 0..3 post_i = 2 sigmoid(mix[4+i] s1
//   + base[4+i]) comb  = sinkhorn(mix[8+4i+j] s2 + base[8+4i+j])  row softmax + eps, columns
//   normalised, then rows and
//                                                    columns in turn, num_iterations normalisations
//                                                    of columns
//   out   = norm_weight * y / rms(y),  y = sum_i pre_i x_i
//   next_j = post_j f + sum_i comb[i][j] x_i         f = the sub-layer's output
#pragma once

#include <cstdint>

#include "kernels/common/claim.h"

namespace fulcrum::kernels {

inline constexpr int kMhcStreams = 4;
inline constexpr int kMhcMixes = 24;  // 4 pre, 4 post, 16 comb

struct MhcPreProblem {
  std::int32_t num_tokens = 0;
  std::int32_t hidden = 0;  // per stream; multiple of 256, <= 8192
  std::int32_t num_iterations = 20;
  float norm_epsilon = 1e-6F;
  float epsilon = 1e-6F;
  const std::uint16_t* residual = nullptr;     // BF16 [tokens, 4, hidden]
  const float* fn = nullptr;                   // [24, 4 * hidden]
  const float* scale = nullptr;                // [3]
  const float* base = nullptr;                 // [24]
  const std::uint16_t* norm_weight = nullptr;  // BF16 [hidden]
  std::uint16_t* out = nullptr;                // BF16 [tokens, hidden]
  float* post = nullptr;                       // [tokens, 4]
  float* comb = nullptr;       // [tokens, 4, 4], row i = source stream; 16-byte aligned
  float* workspace = nullptr;  // mhc_pre_workspace_floats(...)
};

// Columns of fn per block of the first kernel; the partial products of all blocks go through the
// workspace.
inline constexpr int kMhcColumnsPerBlock = 128;
std::int64_t mhc_pre_workspace_floats(std::int32_t num_tokens, std::int32_t hidden);
Claim mhc_pre_claim(std::int32_t num_tokens, std::int32_t hidden, std::int32_t num_iterations);

struct MhcPostProblem {
  std::int32_t num_tokens = 0;
  std::int32_t hidden = 0;                  // multiple of 8
  const std::uint16_t* residual = nullptr;  // BF16 [tokens, 4, hidden]
  const std::uint16_t* sublayer = nullptr;  // BF16 [tokens, hidden]
  const float* post = nullptr;              // [tokens, 4]
  const float* comb = nullptr;              // [tokens, 4, 4]
  std::uint16_t* out = nullptr;             // BF16 [tokens, 4, hidden]; may be `residual`
};
Claim mhc_post_claim(std::int32_t num_tokens, std::int32_t hidden);

}  // namespace fulcrum::kernels
