#include "kernels/common/warp.cuh"
#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/elementwise/kv_store.cuh"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kTokensPerBlock = kThreads / 32;

__global__ void __launch_bounds__(kThreads) kv_store_kernel(KvStoreProblem problem) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int token =
      static_cast<int>(blockIdx.x) * kTokensPerBlock + static_cast<int>(threadIdx.x) / 32;
  if (token >= problem.num_tokens) return;
  const std::int32_t row = problem.rows[token];
  if (row < 0) return;
  const uint4* in =
      reinterpret_cast<const uint4*>(problem.in + static_cast<std::int64_t>(token) * kKvHeadDim) +
      2 * lane;
  const uint4* weight = reinterpret_cast<const uint4*>(problem.weight) + 2 * lane;
  float half[8];
  float v[16];
  float w[16];
  float squares = 0.0F;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    device::unpack_bf16x8(in[h], half);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[8 * h + i] = half[i];
      squares = fmaf(half[i], half[i], squares);
    }
    device::unpack_bf16x8(weight[h], half);
#pragma unroll
    for (int i = 0; i < 8; ++i) w[8 * h + i] = half[i];
  }
  const float scale = rsqrtf(device::warp_sum(squares) / kKvHeadDim + problem.epsilon);
#pragma unroll
  for (int i = 0; i < 16; ++i) v[i] *= scale * w[i];
  const float2* cos_sin =
      reinterpret_cast<const float2*>(problem.rope.cos_sin) +
      static_cast<std::int64_t>(problem.rope.positions[token]) * (kKvRopeValues / 2);
  device::store_kv_row(v, cos_sin, problem.pool, row, lane);
}

}  // namespace

cudaError_t kv_store(const KvStoreProblem& problem, cudaStream_t stream) {
  if (problem.num_tokens <= 0) return cudaErrorInvalidValue;
  const unsigned blocks =
      static_cast<unsigned>((problem.num_tokens + kTokensPerBlock - 1) / kTokensPerBlock);
  kv_store_kernel<<<blocks, kThreads, 0, stream>>>(problem);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
