// Merges the partial softmaxes of the splits of one (token, head), adds the sink and rounds to BF16.
#include <cuda_bf16.h>

#include "kernels/attention/sparse_mla_launch.h"
#include "kernels/common/formats.h"

namespace fulcrum::kernels::detail {
namespace {

constexpr float kLog2E = 1.4426950408889634F;
constexpr int kThreads = kKvHeadDim / 4;

__global__ void __launch_bounds__(kThreads)
    combine_kernel(SparseMlaPartials partials, const float* __restrict__ sink,
                   std::uint16_t* __restrict__ out, int num_heads, int num_splits) {
  const std::int64_t token_head = blockIdx.x;
  const std::int64_t num_token_heads = gridDim.x;
  const float sink_log2 = sink[token_head % num_heads] * kLog2E;
  const int dim = static_cast<int>(threadIdx.x) * 4;

  float largest = sink_log2;
  for (int s = 0; s < num_splits; ++s) {
    largest = fmaxf(largest, partials.log2_sum[s * num_token_heads + token_head]);
  }
  float denominator = exp2f(sink_log2 - largest);
  float4 sum = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  for (int s = 0; s < num_splits; ++s) {
    const float log2_sum = partials.log2_sum[s * num_token_heads + token_head];
    if (log2_sum == -INFINITY) continue;  // Its outputs were never written.
    const float weight = exp2f(log2_sum - largest);
    const float4 part = *reinterpret_cast<const float4*>(
        partials.out + (s * num_token_heads + token_head) * kKvHeadDim + dim);
    denominator += weight;
    sum.x += weight * part.x;
    sum.y += weight * part.y;
    sum.z += weight * part.z;
    sum.w += weight * part.w;
  }
  // With a sink of -inf and no row at all there is nothing to average: the output is zero.
  const float inverse = denominator > 0.0F ? 1.0F / denominator : 0.0F;
  const uint2 packed = make_uint2(
      encode_bf16(sum.x * inverse) | static_cast<std::uint32_t>(encode_bf16(sum.y * inverse)) << 16,
      encode_bf16(sum.z * inverse) | static_cast<std::uint32_t>(encode_bf16(sum.w * inverse)) << 16);
  *reinterpret_cast<uint2*>(out + token_head * kKvHeadDim + dim) = packed;
}

}  // namespace

cudaError_t sparse_mla_combine(const SparseMlaProblem& problem, int num_splits, cudaStream_t stream) {
  const unsigned blocks =
      static_cast<unsigned>(problem.shape.num_tokens) * static_cast<unsigned>(problem.shape.num_heads);
  combine_kernel<<<blocks, kThreads, 0, stream>>>(sparse_mla_partials(problem, num_splits),
                                                  problem.sink, problem.out, problem.shape.num_heads,
                                                  num_splits);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels::detail
