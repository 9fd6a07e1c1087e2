#include "kernels/elementwise/elementwise.h"

namespace fulcrum::kernels {

Claim rms_norm_claim(std::int32_t num_rows, std::int32_t dim, bool has_weight) {
  const double values = static_cast<double>(num_rows) * dim;
  return {.bytes = 2.0 * 2.0 * values + (has_weight ? 2.0 * dim : 0.0),
          .flop = (has_weight ? 4.0 : 3.0) * values};
}

Claim query_norm_rope_claim(std::int32_t num_tokens, std::int32_t num_heads) {
  const double heads = static_cast<double>(num_tokens) * num_heads;
  // A position's 32 cosine-sine pairs and its number once per token.
  return {.bytes = heads * 2.0 * 2.0 * kKvHeadDim + num_tokens * (4.0 * kKvRopeValues + 4.0),
          .flop = heads * (3.0 * kKvHeadDim + 3.0 * kKvRopeValues)};
}

Claim inverse_rope_claim(std::int32_t num_tokens, std::int32_t num_heads) {
  const double heads = static_cast<double>(num_tokens) * num_heads;
  return {.bytes = heads * 2.0 * 2.0 * kKvRopeValues + num_tokens * (4.0 * kKvRopeValues + 4.0),
          .flop = heads * 3.0 * kKvRopeValues};
}

Claim kv_store_claim(std::int32_t num_tokens) {
  const double tokens = num_tokens;
  return {.bytes = tokens * (2.0 * kKvHeadDim + kKvRowBytes + 4.0 * kKvRopeValues + 8.0) +
                   2.0 * kKvHeadDim,
          .flop = tokens * (4.0 * kKvHeadDim + 3.0 * kKvRopeValues + 2.0 * kKvFp8Values)};
}

Claim group_quantize_claim(std::int32_t num_rows, std::int32_t dim, bool e8m0_scales) {
  const double values = static_cast<double>(num_rows) * dim;
  return {.bytes = 3.0 * values + (e8m0_scales ? 1.0 : 4.0) * values / kQuantizeGroup,
          .flop = 2.0 * values};
}

Claim swiglu_claim(std::int32_t num_rows, std::int32_t width) {
  const double values = static_cast<double>(num_rows) * width;
  // Exponential, addition, division and two products per value.
  return {.bytes = 3.0 * 2.0 * values, .flop = 5.0 * values};
}

Claim stream_read_claim(std::int64_t num_bytes) {
  return {.bytes = static_cast<double>(num_bytes), .flop = 0.0};
}

Claim stream_copy_claim(std::int64_t num_bytes) {
  return {.bytes = 2.0 * static_cast<double>(num_bytes), .flop = 0.0};
}

}  // namespace fulcrum::kernels
