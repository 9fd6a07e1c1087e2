// What a step needs beside the kernels of kernels/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fulcrum::replay {

/// out[t, s, :] = table[token_ids[t], :] for each of `streams` streams; BF16, `hidden` a multiple
/// of
/// 8. Enqueues on `stream`.
cudaError_t gather_embeddings(const std::uint16_t* table, const std::int32_t* token_ids,
                              int num_tokens, int hidden, int streams, std::uint16_t* out,
                              cudaStream_t stream);

}  // namespace fulcrum::replay
