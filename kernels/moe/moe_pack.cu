#include "kernels/moe/moe.h"
#include "kernels/moe/moe_packed.h"

namespace fulcrum::kernels {
namespace {

__global__ void moe_pack_kernel(uint4* words, std::int64_t count) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    uint4 v = words[i];
    v.x = fp4_pack(v.x);
    v.y = fp4_pack(v.y);
    v.z = fp4_pack(v.z);
    v.w = fp4_pack(v.w);
    words[i] = v;
  }
}

}  // namespace

cudaError_t launch_moe_pack(std::uint8_t* codes, std::int64_t num_bytes, cudaStream_t stream) {
  if (num_bytes < 0 || num_bytes % 16 != 0) return cudaErrorInvalidValue;
  if (num_bytes == 0) return cudaSuccess;
  constexpr int kThreads = 256;
  constexpr int kBlocks = 1024;
  moe_pack_kernel<<<kBlocks, kThreads, 0, stream>>>(reinterpret_cast<uint4*>(codes),
                                                    num_bytes / 16);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
