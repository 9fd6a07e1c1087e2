// Rotary position: with the per-head norm for queries, alone and conjugated for attention outputs.
#include "kernels/common/warp.cuh"
#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/elementwise/row_math.cuh"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kHeadsPerBlock = kThreads / 32;
constexpr int kValuesPerLane = kKvHeadDim / 32;
constexpr int kFirstRopeLane = kKvFp8Values / kValuesPerLane;
constexpr int kPairsPerLane = kValuesPerLane / 2;
constexpr int kRopePairs = kKvRopeValues / 2;

// A warp per head; the last four lanes hold exactly the rotary part.
__global__ void __launch_bounds__(kThreads) query_norm_rope_kernel(QueryNormRopeProblem problem) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t head =
      static_cast<std::int64_t>(blockIdx.x) * kHeadsPerBlock + threadIdx.x / 32;
  if (head >= static_cast<std::int64_t>(problem.num_tokens) * problem.num_heads) return;
  const uint4* in = reinterpret_cast<const uint4*>(problem.in + head * kKvHeadDim) + 2 * lane;
  float low[8];
  float high[8];
  device::unpack_bf16x8(in[0], low);
  device::unpack_bf16x8(in[1], high);
  float squares = 0.0F;
#pragma unroll
  for (int i = 0; i < 8; ++i) squares = fmaf(low[i], low[i], fmaf(high[i], high[i], squares));
  const float scale = rsqrtf(device::warp_sum(squares) / kKvHeadDim + problem.epsilon);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    low[i] *= scale;
    high[i] *= scale;
  }
  if (lane >= kFirstRopeLane) {
    const std::int64_t position = problem.rope.positions[head / problem.num_heads];
    const float2* cos_sin = reinterpret_cast<const float2*>(problem.rope.cos_sin) +
                            position * kRopePairs + (lane - kFirstRopeLane) * kPairsPerLane;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      device::rotate<false>(low[2 * i], low[2 * i + 1], cos_sin[i]);
      device::rotate<false>(high[2 * i], high[2 * i + 1], cos_sin[4 + i]);
    }
  }
  uint4* out = reinterpret_cast<uint4*>(problem.out + head * kKvHeadDim) + 2 * lane;
  out[0] = device::pack_bf16x8(low);
  out[1] = device::pack_bf16x8(high);
}

// A warp per head, a lane per pair.
__global__ void __launch_bounds__(kThreads) inverse_rope_kernel(InverseRopeProblem problem) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t head =
      static_cast<std::int64_t>(blockIdx.x) * kHeadsPerBlock + threadIdx.x / 32;
  if (head >= static_cast<std::int64_t>(problem.num_tokens) * problem.num_heads) return;
  const std::int64_t position = problem.rope.positions[head / problem.num_heads];
  const float2 cos_sin =
      reinterpret_cast<const float2*>(problem.rope.cos_sin)[position * kRopePairs + lane];
  std::uint32_t* pair =
      reinterpret_cast<std::uint32_t*>(problem.heads + head * kKvHeadDim + kKvFp8Values) + lane;
  float re = float_from_bits(*pair << 16);
  float im = float_from_bits(*pair & 0xffff0000U);
  device::rotate<true>(re, im, cos_sin);
  *pair = device::pack_bf16x2(re, im);
}

unsigned blocks_for(std::int64_t heads) {
  return static_cast<unsigned>((heads + kHeadsPerBlock - 1) / kHeadsPerBlock);
}

}  // namespace

cudaError_t query_norm_rope(const QueryNormRopeProblem& problem, cudaStream_t stream) {
  const std::int64_t heads = std::int64_t{problem.num_tokens} * problem.num_heads;
  if (heads <= 0) return cudaErrorInvalidValue;
  query_norm_rope_kernel<<<blocks_for(heads), kThreads, 0, stream>>>(problem);
  return cudaGetLastError();
}

cudaError_t inverse_rope(const InverseRopeProblem& problem, cudaStream_t stream) {
  const std::int64_t heads = std::int64_t{problem.num_tokens} * problem.num_heads;
  if (heads <= 0) return cudaErrorInvalidValue;
  inverse_rope_kernel<<<blocks_for(heads), kThreads, 0, stream>>>(problem);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
