#include "kernels/indexer/indexer.h"

#include <algorithm>

#include "kernels/indexer/compressor.h"

namespace fulcrum::kernels {

Claim index_logits_claim(std::int32_t num_tokens, double keys_per_token) {
  const double tokens = num_tokens;
  const double keys = tokens * keys_per_token;
  return {.bytes = keys * (kIndexKeyBytes + 4.0 + 4.0 / kIndexPageRows) +
                   tokens * (kIndexHeads * (kIndexDim + 4.0) + 4.0),
          .flop = keys * kIndexHeads * (2.0 * kIndexDim + 2.0)};
}

Claim top_k_claim(std::int32_t num_tokens, double keys_per_token, std::int32_t top_k) {
  const double tokens = num_tokens;
  return {.bytes = tokens * 4.0 * (keys_per_token + top_k + 1.0), .flop = tokens * keys_per_token};
}

Claim index_query_claim(std::int32_t num_tokens) {
  const double heads = static_cast<double>(num_tokens) * kIndexHeads;
  constexpr double kHadamardStages = 7.0;
  return {.bytes = heads * (3.0 * kIndexDim + 8.0) + num_tokens * (4.0 * kIndexRopeValues + 4.0),
          .flop = heads * (3.0 * kIndexRopeValues + (kHadamardStages + 2.0) * kIndexDim)};
}

Claim compressor_claim(const CompressorShape& shape, double rows_per_request) {
  const double requests = shape.num_requests;
  const double tokens = requests * shape.tokens_per_request;
  const double width = compressor_width(shape);
  const double dim = compressor_dim(shape.kind);
  const double emitted = requests * std::min<double>(rows_per_request, shape.tokens_per_request);
  const double pooled = shape.ratio * (shape.overlap ? 2.0 : 1.0);  // positions
  // What this launch wrote into the ring need not come from memory again.
  const double pooled_reads = std::max(0.0, pooled - shape.tokens_per_request);
  const double row_bytes = shape.kind == CompressedRow::kAttention ? kKvRowBytes : kIndexKeyBytes;
  return {.bytes = tokens * (16.0 * width + 4.0) + 8.0 * requests +
                   4.0 * width * std::min<double>(tokens, shape.ratio) +
                   emitted * (pooled_reads * 8.0 * dim + row_bytes + 4.0 * kIndexRopeValues) +
                   (emitted > 0.0 ? 2.0 * dim : 0.0),
          .flop = tokens * width + emitted * dim * (4.0 * pooled + 4.0)};
}

}  // namespace fulcrum::kernels
