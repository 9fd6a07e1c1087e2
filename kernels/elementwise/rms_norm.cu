#include "kernels/common/warp.cuh"
#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/elementwise/row_math.cuh"

namespace fulcrum::kernels {
namespace {

constexpr int kMaxThreads = 512;
constexpr int kMaxChunks = 4;  // of 8 values per thread: rows up to 16384

// One block per row; the row stays in registers between the sum of squares and the scaling. Rows of
// up to 4096 get the one-chunk form, whose registers let four blocks share an SM.
template <int kChunks>
__global__ void __launch_bounds__(kMaxThreads) rms_norm_kernel(RmsNormProblem problem) {
  __shared__ float scratch[32];
  const int chunks = problem.dim / 8;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * chunks;
  const uint4* in = reinterpret_cast<const uint4*>(problem.in) + first;
  uint4* out = reinterpret_cast<uint4*>(problem.out) + first;
  float v[kChunks][8];
  float squares = 0.0F;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int chunk = static_cast<int>(threadIdx.x + c * blockDim.x);
    if (chunk >= chunks) break;
    device::unpack_bf16x8(device::load_streaming(in + chunk), v[c]);
#pragma unroll
    for (int i = 0; i < 8; ++i) squares = fmaf(v[c][i], v[c][i], squares);
  }
  const float mean = device::block_sum(squares, scratch) / static_cast<float>(problem.dim);
  const float scale = rsqrtf(mean + problem.epsilon);
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int chunk = static_cast<int>(threadIdx.x + c * blockDim.x);
    if (chunk >= chunks) break;
    float w[8] = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
    if (problem.weight != nullptr) {
      device::unpack_bf16x8(reinterpret_cast<const uint4*>(problem.weight)[chunk], w);
    }
    float scaled[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) scaled[i] = v[c][i] * scale * w[i];
    out[chunk] = device::pack_bf16x8(scaled);
  }
}

// One warp per row of 4096: without block barriers a warp's next row streams in while others scale
// theirs. For batches that fill the device with warps.
constexpr int kWarpRowDim = 4096;
constexpr int kWarpRowThreads = 128;

__global__ void __launch_bounds__(kWarpRowThreads) rms_norm_warp_kernel(RmsNormProblem problem) {
  constexpr int kChunks = kWarpRowDim / (8 * 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (kWarpRowThreads / 32) + threadIdx.x / 32;
  if (row >= problem.num_rows) return;
  const uint4* in = reinterpret_cast<const uint4*>(problem.in + row * kWarpRowDim) + lane;
  uint4 raw[kChunks];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) raw[c] = device::load_streaming(in + 32 * c);
  float squares = 0.0F;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    float v[8];
    device::unpack_bf16x8(raw[c], v);
#pragma unroll
    for (int i = 0; i < 8; ++i) squares = fmaf(v[i], v[i], squares);
  }
  const float scale = rsqrtf(device::warp_sum(squares) / kWarpRowDim + problem.epsilon);
  uint4* out = reinterpret_cast<uint4*>(problem.out + row * kWarpRowDim) + lane;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    float v[8];
    float w[8] = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
    device::unpack_bf16x8(raw[c], v);
    if (problem.weight != nullptr) {
      device::unpack_bf16x8(__ldg(reinterpret_cast<const uint4*>(problem.weight) + lane + 32 * c),
                            w);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] *= scale * w[i];
    __stcs(out + 32 * c, device::pack_bf16x8(v));
  }
}

}  // namespace

cudaError_t rms_norm(const RmsNormProblem& problem, cudaStream_t stream) {
  if (problem.num_rows <= 0 || problem.dim <= 0 || problem.dim % 8 != 0 ||
      problem.dim > 8 * kMaxThreads * kMaxChunks) {
    return cudaErrorInvalidValue;
  }
  // Four warps on each of about a hundred SMs, twice over.
  constexpr int kManyRows = 1024;
  if (problem.dim == kWarpRowDim && problem.num_rows >= kManyRows) {
    constexpr int kRowsPerBlock = kWarpRowThreads / 32;
    rms_norm_warp_kernel<<<static_cast<unsigned>((problem.num_rows + kRowsPerBlock - 1) /
                                                 kRowsPerBlock),
                           kWarpRowThreads, 0, stream>>>(problem);
    return cudaGetLastError();
  }
  const int wanted = (problem.dim / 8 + 31) / 32 * 32;
  const int threads = wanted < kMaxThreads ? wanted : kMaxThreads;
  const auto kernel = wanted <= kMaxThreads ? rms_norm_kernel<1> : rms_norm_kernel<kMaxChunks>;
  kernel<<<static_cast<unsigned>(problem.num_rows), static_cast<unsigned>(threads), 0, stream>>>(
      problem);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
