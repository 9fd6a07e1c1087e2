// The yardstick of every read-dominated kernel: contiguous 16-byte accesses, eight in flight per
// thread.
#include "kernels/common/warp.cuh"
#include "kernels/elementwise/elementwise_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 8;
constexpr int kTile = kThreads * kUnroll;  // 16-byte words per block

__global__ void __launch_bounds__(kThreads)
    read_kernel(const uint4* __restrict__ in, std::uint32_t* __restrict__ out,
                std::int64_t num_words) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kTile + threadIdx.x;
  uint4 v[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t word = first + i * kThreads;
    v[i] = word < num_words ? device::load_streaming(in + word) : make_uint4(0, 0, 0, 0);
  }
  std::uint32_t checksum = 0;
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) checksum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  constexpr std::uint32_t kNever =
      0x9e3779b9U;  // The store keeps the loads alive and all but never runs.
  if (checksum == kNever) *out = checksum;
}

__global__ void __launch_bounds__(kThreads)
    copy_kernel(const uint4* __restrict__ in, uint4* __restrict__ out, std::int64_t num_words) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kTile + threadIdx.x;
  uint4 v[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t word = first + i * kThreads;
    if (word < num_words) v[i] = device::load_streaming(in + word);
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t word = first + i * kThreads;
    if (word < num_words) __stcs(out + word, v[i]);
  }
}

}  // namespace

cudaError_t stream_read(const StreamProblem& problem, cudaStream_t stream) {
  if (problem.num_bytes <= 0 || problem.num_bytes % 16 != 0) return cudaErrorInvalidValue;
  const std::int64_t words = problem.num_bytes / 16;
  read_kernel<<<static_cast<unsigned>((words + kTile - 1) / kTile), kThreads, 0, stream>>>(
      static_cast<const uint4*>(problem.in), static_cast<std::uint32_t*>(problem.out), words);
  return cudaGetLastError();
}

cudaError_t stream_copy(const StreamProblem& problem, cudaStream_t stream) {
  if (problem.num_bytes <= 0 || problem.num_bytes % 16 != 0) return cudaErrorInvalidValue;
  const std::int64_t words = problem.num_bytes / 16;
  copy_kernel<<<static_cast<unsigned>((words + kTile - 1) / kTile), kThreads, 0, stream>>>(
      static_cast<const uint4*>(problem.in), static_cast<uint4*>(problem.out), words);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
