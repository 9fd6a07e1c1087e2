#include "kernels/common/warp.cuh"
#include "kernels/elementwise/row_math.cuh"
#include "kernels/mhc/mhc_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 128;

// A thread owns eight positions of all four streams, so the update may be in place.
__global__ void __launch_bounds__(kThreads) mhc_post_kernel(MhcPostProblem problem) {
  const int chunks = problem.hidden / 8;
  const int chunk = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const std::int64_t token = blockIdx.y;
  if (chunk >= chunks) return;
  const uint4* in =
      reinterpret_cast<const uint4*>(problem.residual) + token * kMhcStreams * chunks + chunk;
  float x[kMhcStreams][8];
  float f[8];
#pragma unroll
  for (int s = 0; s < kMhcStreams; ++s)
    device::unpack_bf16x8(device::load_streaming(in + s * chunks), x[s]);
  device::unpack_bf16x8(device::load_streaming(reinterpret_cast<const uint4*>(problem.sublayer) +
                                               token * chunks + chunk),
                        f);
  const float4 post = __ldg(reinterpret_cast<const float4*>(problem.post) + token);
  const float post_of[kMhcStreams] = {post.x, post.y, post.z, post.w};
  float comb[kMhcStreams][kMhcStreams];
#pragma unroll
  for (int i = 0; i < kMhcStreams; ++i) {
    const float4 row =
        __ldg(reinterpret_cast<const float4*>(problem.comb) + token * kMhcStreams + i);
    comb[i][0] = row.x;
    comb[i][1] = row.y;
    comb[i][2] = row.z;
    comb[i][3] = row.w;
  }
  uint4* out = reinterpret_cast<uint4*>(problem.out) + token * kMhcStreams * chunks + chunk;
#pragma unroll
  for (int j = 0; j < kMhcStreams; ++j) {
    float next[8];
#pragma unroll
    for (int d = 0; d < 8; ++d) {
      next[d] = post_of[j] * f[d];
#pragma unroll
      for (int i = 0; i < kMhcStreams; ++i) next[d] = fmaf(comb[i][j], x[i][d], next[d]);
    }
    out[j * chunks] = device::pack_bf16x8(next);
  }
}

}  // namespace

cudaError_t mhc_post(const MhcPostProblem& problem, cudaStream_t stream) {
  if (problem.num_tokens <= 0 || problem.hidden <= 0 || problem.hidden % 8 != 0) {
    return cudaErrorInvalidValue;
  }
  const dim3 grid(static_cast<unsigned>((problem.hidden / 8 + kThreads - 1) / kThreads),
                  static_cast<unsigned>(problem.num_tokens));
  mhc_post_kernel<<<grid, kThreads, 0, stream>>>(problem);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
