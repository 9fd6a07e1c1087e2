#include "kernels/common/warp.cuh"
#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/elementwise/row_math.cuh"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kLanesPerGroup = kQuantizeGroup / 8;

// Half a warp per group of 128; rows are contiguous, so groups need no row index.
__global__ void __launch_bounds__(kThreads)
    group_quantize_kernel(GroupQuantizeProblem problem, std::int64_t num_groups) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t group = thread / kLanesPerGroup;
  const bool active = group < num_groups;
  float v[8] = {};
  if (active) device::unpack_bf16x8(device::load_streaming(problem.in + 8 * thread), v);
  float largest = 1e-4F;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(v[i]));
#pragma unroll
  for (int offset = kLanesPerGroup / 2; offset > 0; offset >>= 1) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, offset));
  }
  if (!active) return;
  float scale = largest / 448.0F;
  if (problem.scales_e8m0 != nullptr) {
    const std::uint8_t code = encode_e8m0_ceil(scale);
    scale = decode_e8m0(code);
    if (thread % kLanesPerGroup == 0) problem.scales_e8m0[group] = code;
  } else if (thread % kLanesPerGroup == 0) {
    problem.scales[group] = scale;
  }
  const float inverse = 1.0F / scale;
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] *= inverse;
  *reinterpret_cast<uint2*>(problem.codes + 8 * thread) = make_uint2(
      device::pack_e4m3x4(v[0], v[1], v[2], v[3]), device::pack_e4m3x4(v[4], v[5], v[6], v[7]));
}

}  // namespace

cudaError_t group_quantize(const GroupQuantizeProblem& problem, cudaStream_t stream) {
  if (problem.num_rows <= 0 || problem.dim <= 0 || problem.dim % kQuantizeGroup != 0 ||
      (problem.scales == nullptr) == (problem.scales_e8m0 == nullptr)) {
    return cudaErrorInvalidValue;
  }
  const std::int64_t groups = std::int64_t{problem.num_rows} * (problem.dim / kQuantizeGroup);
  const std::int64_t blocks = (groups * kLanesPerGroup + kThreads - 1) / kThreads;
  group_quantize_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(problem, groups);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
