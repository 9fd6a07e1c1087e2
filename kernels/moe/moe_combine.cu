#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/formats.h"
#include "kernels/moe/moe_parts.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    moe_combine_kernel(const MoeArgs args, const float* slot_out) {
  device::wait_for_first_kernel();
  const int quads = args.shape.hidden / 4;
  const int token = blockIdx.y;
  const int quad = blockIdx.x * kThreads + threadIdx.x;
  if (quad >= quads) return;
  float4 sum = make_float4(0, 0, 0, 0);
  for (int k = 0; k < args.shape.top_k; ++k) {
    const std::int64_t slot = static_cast<std::int64_t>(token) * args.shape.top_k + k;
    const float weight = args.expert_weights[slot];
    const float4 part = reinterpret_cast<const float4*>(slot_out)[slot * quads + quad];
    sum.x += weight * part.x;
    sum.y += weight * part.y;
    sum.z += weight * part.z;
    sum.w += weight * part.w;
  }
  const uint2 packed =
      make_uint2(encode_bf16(sum.x) | (static_cast<std::uint32_t>(encode_bf16(sum.y)) << 16),
                 encode_bf16(sum.z) | (static_cast<std::uint32_t>(encode_bf16(sum.w)) << 16));
  reinterpret_cast<uint2*>(args.out)[static_cast<std::int64_t>(token) * quads + quad] = packed;
}

}  // namespace

cudaError_t launch_moe_combine(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((args.shape.hidden / 4 + kThreads - 1) / kThreads),
                  static_cast<unsigned>(args.shape.tokens));
  return launch_dependent(moe_combine_kernel, grid, dim3(kThreads), 0, stream, args, w.slot_out);
}

}  // namespace fulcrum::kernels
