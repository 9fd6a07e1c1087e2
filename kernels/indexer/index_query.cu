#include "kernels/indexer/index_key.cuh"
#include "kernels/indexer/indexer_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kHeadsPerBlock = kThreads / 32;

__global__ void __launch_bounds__(kThreads) index_query_kernel(IndexQueryProblem problem) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t head =
      static_cast<std::int64_t>(blockIdx.x) * kHeadsPerBlock + threadIdx.x / 32;
  const uint2 word = reinterpret_cast<const uint2*>(problem.in + head * kIndexDim)[lane];
  float v[4] = {float_from_bits(word.x << 16), float_from_bits(word.x & 0xffff0000U),
                float_from_bits(word.y << 16), float_from_bits(word.y & 0xffff0000U)};
  const std::int64_t position = problem.rope.positions[head / kIndexHeads];
  const float2* cos_sin =
      reinterpret_cast<const float2*>(problem.rope.cos_sin) + position * (kIndexRopeValues / 2);
  float scale = 0.0F;
  const std::uint32_t codes = device::encode_index_row(v, cos_sin, lane, &scale);
  reinterpret_cast<std::uint32_t*>(problem.query + head * kIndexDim)[lane] = codes;
  if (lane == 0) problem.out_weights[head] = problem.in_weights[head] * scale * problem.factor;
}

}  // namespace

cudaError_t index_query(const IndexQueryProblem& problem, cudaStream_t stream) {
  if (problem.num_tokens <= 0) return cudaErrorInvalidValue;
  static_assert(kIndexHeads % kHeadsPerBlock == 0);
  const unsigned blocks =
      static_cast<unsigned>(problem.num_tokens) * (kIndexHeads / kHeadsPerBlock);
  index_query_kernel<<<blocks, kThreads, 0, stream>>>(problem);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
