#include "replay/step/step_kernels.h"

namespace fulcrum::replay {
namespace {

__global__ void gather_kernel(const uint4* table, const std::int32_t* token_ids, int words,
                              int streams, uint4* out) {
  const auto token = static_cast<std::int64_t>(blockIdx.x);
  const uint4* row = table + static_cast<std::int64_t>(token_ids[token]) * words;
  uint4* to = out + token * streams * words;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x)) {
    const uint4 word = row[i];
    for (int s = 0; s < streams; ++s) to[static_cast<std::int64_t>(s) * words + i] = word;
  }
}

}  // namespace

cudaError_t gather_embeddings(const std::uint16_t* table, const std::int32_t* token_ids,
                              int num_tokens, int hidden, int streams, std::uint16_t* out,
                              cudaStream_t stream) {
  if (num_tokens < 1 || hidden < 8 || hidden % 8 != 0 || streams < 1) return cudaErrorInvalidValue;
  gather_kernel<<<static_cast<unsigned>(num_tokens), 256, 0, stream>>>(
      reinterpret_cast<const uint4*>(table), token_ids, hidden / 8, streams,
      reinterpret_cast<uint4*>(out));
  return cudaGetLastError();
}

}  // namespace fulcrum::replay
