#include "kernels/common/warp.cuh"
#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/elementwise/row_math.cuh"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    swiglu_kernel(SwigluProblem problem, std::int64_t num_chunks) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= num_chunks) return;
  const int chunks_per_row = problem.width / 8;
  const std::int64_t row = index / chunks_per_row;
  const std::int64_t chunk = index % chunks_per_row;
  const uint4* in = reinterpret_cast<const uint4*>(problem.in) + row * 2 * chunks_per_row + chunk;
  float gate[8];
  float up[8];
  device::unpack_bf16x8(device::load_streaming(in), gate);
  device::unpack_bf16x8(device::load_streaming(in + chunks_per_row), up);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float g = fminf(gate[i], problem.limit);
    const float u = fminf(fmaxf(up[i], -problem.limit), problem.limit);
    gate[i] = g / (1.0F + __expf(-g)) * u;
  }
  reinterpret_cast<uint4*>(problem.out)[index] = device::pack_bf16x8(gate);
}

}  // namespace

cudaError_t swiglu(const SwigluProblem& problem, cudaStream_t stream) {
  if (problem.num_rows <= 0 || problem.width <= 0 || problem.width % 8 != 0) {
    return cudaErrorInvalidValue;
  }
  const std::int64_t chunks = std::int64_t{problem.num_rows} * (problem.width / 8);
  const std::int64_t blocks = (chunks + kThreads - 1) / kThreads;
  swiglu_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(problem, chunks);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
