// Merges the partial softmaxes of the splits of one (token, head), adds the sink and rounds to
// BF16.
#include <cuda_bf16.h>

#include "kernels/attention/sparse_mla_launch.h"
#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/formats.h"
#include "kernels/common/warp.cuh"

namespace fulcrum::kernels::detail {
namespace {

constexpr float kLog2E = 1.4426950408889634F;
constexpr int kThreads = kKvHeadDim / 4;
constexpr int kMaxSplits = kSparseMlaMaxSplits;

// One block per (token, head). The weights of all splits are found first; the loads of their
// outputs depend on nothing and are in flight together.
__global__ void __launch_bounds__(kThreads)
    combine_kernel(SparseMlaPartials partials, const float* __restrict__ sink,
                   std::uint16_t* __restrict__ out, int num_heads, int num_splits) {
  __shared__ float weights[kMaxSplits];
  __shared__ float inverse_denominator;
  const std::int64_t token_head = blockIdx.x;
  const std::int64_t num_token_heads = gridDim.x;
  const int thread = static_cast<int>(threadIdx.x);
  device::wait_for_first_kernel();
  const int dim = thread * 4;
  const float* parts = partials.out + token_head * kKvHeadDim + dim;
  const std::int64_t split_stride = num_token_heads * kKvHeadDim;
  // The first outputs are fetched beside the weights, not after them.
  constexpr int kAhead = 4;
  float4 ahead[kAhead];
#pragma unroll
  for (int s = 0; s < kAhead; ++s) {
    if (s < num_splits)
      ahead[s] = __ldcg(reinterpret_cast<const float4*>(parts + s * split_stride));
  }
  if (thread < 32) {
    constexpr int kPerLane = kMaxSplits / 32;
    const float sink_log2 = sink[token_head % num_heads] * kLog2E;
    float log2_sum[kPerLane];
    float largest = sink_log2;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int split = thread + 32 * i;
      log2_sum[i] =
          split < num_splits ? partials.log2_sum[split * num_token_heads + token_head] : -INFINITY;
      largest = fmaxf(largest, log2_sum[i]);
    }
    largest = device::warp_max(largest);
    const float base = largest == -INFINITY ? 0.0F : largest;
    float denominator = 0.0F;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const float weight = exp2f(log2_sum[i] - base);
      weights[thread + 32 * i] = weight;
      denominator += weight;
    }
    denominator = device::warp_sum(denominator) + exp2f(sink_log2 - base);
    // With a sink of -inf and no row at all there is nothing to average: the output is zero.
    if (thread == 0) inverse_denominator = denominator > 0.0F ? 1.0F / denominator : 0.0F;
  }
  __syncthreads();
  float4 sum = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  const auto add = [&](float weight, const float4& part) {
    if (weight == 0.0F) return;  // An empty split: its outputs were never written.
    sum.x += weight * part.x;
    sum.y += weight * part.y;
    sum.z += weight * part.z;
    sum.w += weight * part.w;
  };
#pragma unroll
  for (int s = 0; s < kAhead; ++s) {
    if (s < num_splits) add(weights[s], ahead[s]);
  }
#pragma unroll 8
  for (int s = kAhead; s < num_splits; ++s) {
    add(weights[s], __ldcg(reinterpret_cast<const float4*>(parts + s * split_stride)));
  }
  const float inverse = inverse_denominator;
  const uint2 packed = make_uint2(
      encode_bf16(sum.x * inverse) | static_cast<std::uint32_t>(encode_bf16(sum.y * inverse)) << 16,
      encode_bf16(sum.z * inverse) | static_cast<std::uint32_t>(encode_bf16(sum.w * inverse))
                                         << 16);
  *reinterpret_cast<uint2*>(out + token_head * kKvHeadDim + dim) = packed;
}

}  // namespace

cudaError_t sparse_mla_combine(const SparseMlaProblem& problem, int num_splits,
                               cudaStream_t stream) {
  if (num_splits > kMaxSplits) return cudaErrorInvalidValue;
  const unsigned blocks = static_cast<unsigned>(problem.shape.num_tokens) *
                          static_cast<unsigned>(problem.shape.num_heads);
  return launch_dependent(combine_kernel, blocks, kThreads, 0, stream,
                          sparse_mla_partials(problem, num_splits), problem.sink, problem.out,
                          problem.shape.num_heads, num_splits);
}

}  // namespace fulcrum::kernels::detail
