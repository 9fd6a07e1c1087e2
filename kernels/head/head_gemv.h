// BF16 matrix times a few tokens: the language-model head, and the other BF16 linears of a decode
// step (gate, compressor, indexer weights) whose cost is reading the matrix once.
//   out[t, n] = sum_k weight[n, k] x[t, k]
#pragma once

#include <cstdint>

#include "kernels/common/claim.h"

namespace fulcrum::kernels {

struct HeadGemvProblem {
  std::int32_t num_tokens = 0;            // the matrix is read once per 64 tokens
  std::int32_t num_rows = 0;              // N, any
  std::int32_t depth = 0;                 // K, multiple of 1024
  const std::uint16_t* weight = nullptr;  // BF16 [rows, depth]
  const std::uint16_t* x = nullptr;       // BF16 [tokens, depth]
  float* out = nullptr;                   // [tokens, rows]
};

Claim head_gemv_claim(std::int32_t num_tokens, std::int32_t num_rows, std::int32_t depth);

}  // namespace fulcrum::kernels
