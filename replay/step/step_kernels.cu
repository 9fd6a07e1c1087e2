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

// An instruction takes 16 bytes (CUDA binary utilities, sm_70 and later). Each step has a constant
// of its own, so that the compiler can neither fold nor roll them up.
template <int kFirst, int kCount>
struct Chain {
  static __device__ __forceinline__ float run(float x) {
    return Chain<kFirst + kCount / 2, kCount - kCount / 2>::run(Chain<kFirst, kCount / 2>::run(x));
  }
};
template <int kFirst>
struct Chain<kFirst, 1> {
  static __device__ __forceinline__ float run(float x) {
    return fmaf(x, 0.999F, static_cast<float>(kFirst));
  }
};

__global__ void __launch_bounds__(32) code_kernel(float* out) {
  constexpr int kInstructions = kCodeFlushBytes / 16;
  const float x = Chain<0, kInstructions>::run(out[blockIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = x;
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

cudaError_t flush_code(int num_blocks, float* out, cudaStream_t stream) {
  if (num_blocks < 1) return cudaErrorInvalidValue;
  code_kernel<<<static_cast<unsigned>(num_blocks), 32, 0, stream>>>(out);
  return cudaGetLastError();
}

}  // namespace fulcrum::replay
