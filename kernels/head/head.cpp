#include "kernels/head/head_gemv.h"
#include "kernels/head/sampling.h"

namespace fulcrum::kernels {

Claim head_gemv_claim(std::int32_t num_tokens, std::int32_t num_rows, std::int32_t depth) {
  const double tokens = num_tokens;
  const double rows = num_rows;
  const double matrix_reads = (num_tokens + 63) / 64;
  return {.bytes = 2.0 * rows * depth * matrix_reads + 2.0 * tokens * depth + 4.0 * tokens * rows,
          .flop = 2.0 * tokens * rows * depth};
}

std::int64_t sampling_workspace_bytes(std::int32_t num_tokens, std::int32_t vocab) {
  return std::int64_t{8} * num_tokens * ((vocab + kSamplingChunk - 1) / kSamplingChunk);
}

Claim sampling_claim(std::int32_t num_tokens, std::int32_t vocab) {
  const double values = static_cast<double>(num_tokens) * vocab;
  return {.bytes = 4.0 * values + 8.0 * num_tokens, .flop = values};
}

}  // namespace fulcrum::kernels
