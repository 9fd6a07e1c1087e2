#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/warp.cuh"
#include "kernels/head/head_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 256;

struct Candidate {
  float score;
  std::int32_t index;
};

__device__ __forceinline__ Candidate better(Candidate a, Candidate b) {
  const bool take_b = b.score > a.score || (b.score == a.score && b.index < a.index);
  return take_b ? b : a;
}

__device__ __forceinline__ Candidate block_best(Candidate best) {
  __shared__ Candidate of_warp[kThreads / 32];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    best = better(best, {__shfl_xor_sync(0xffffffffU, best.score, offset),
                         __shfl_xor_sync(0xffffffffU, best.index, offset)});
  }
  if (lane == 0) of_warp[warp] = best;
  __syncthreads();
  for (int w = 0; w < kThreads / 32; ++w) best = better(best, of_warp[w]);
  return best;
}

__global__ void __launch_bounds__(kThreads) chunk_kernel(SamplingProblem problem) {
  const std::int64_t token = blockIdx.y;
  const float temperature = problem.temperatures == nullptr ? 0.0F : problem.temperatures[token];
  const float* logits = problem.logits + token * problem.vocab;
  const int first = static_cast<int>(blockIdx.x) * kSamplingChunk;
  const int last = min(first + kSamplingChunk, problem.vocab);
  device::allow_dependent_launch();
  constexpr int kLoads = kSamplingChunk / (4 * kThreads);  // in flight together
  float4 v[kLoads];
#pragma unroll
  for (int n = 0; n < kLoads; ++n) {
    const int i = first + 4 * (static_cast<int>(threadIdx.x) + n * kThreads);
    v[n] = i < last ? __ldcs(reinterpret_cast<const float4*>(logits + i))
                    : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  }
  Candidate best = {-INFINITY, first};
#pragma unroll
  for (int n = 0; n < kLoads; ++n) {
    const int i = first + 4 * (static_cast<int>(threadIdx.x) + n * kThreads);
    float score[4] = {v[n].x, v[n].y, v[n].z, v[n].w};
    if (temperature > 0.0F) {
      const PhiloxWords words =
          philox(problem.seed, static_cast<std::uint64_t>(token) << 32 | static_cast<unsigned>(i),
                 problem.step);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        score[j] = score[j] / temperature - logf(-logf(uniform_open(words.word[j])));
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) best = better(best, {score[j], i + j});
  }
  best = block_best(best);
  if (threadIdx.x == 0) {
    static_cast<Candidate*>(problem.workspace)[token * gridDim.x + blockIdx.x] = best;
  }
}

__global__ void __launch_bounds__(kThreads) final_kernel(SamplingProblem problem, int num_chunks) {
  const std::int64_t token = blockIdx.x;
  device::wait_for_first_kernel();
  const Candidate* of_chunk = static_cast<const Candidate*>(problem.workspace) + token * num_chunks;
  Candidate best = of_chunk[0];
  for (int c = static_cast<int>(threadIdx.x); c < num_chunks; c += kThreads) {
    best = better(best, of_chunk[c]);
  }
  best = block_best(best);
  if (threadIdx.x == 0) problem.tokens[token] = best.index;
}

}  // namespace

cudaError_t sample(const SamplingProblem& problem, cudaStream_t stream) {
  if (problem.num_tokens <= 0 || problem.vocab <= 0 || problem.vocab % 4 != 0) {
    return cudaErrorInvalidValue;
  }
  const int chunks = (problem.vocab + kSamplingChunk - 1) / kSamplingChunk;
  const dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(problem.num_tokens));
  chunk_kernel<<<grid, kThreads, 0, stream>>>(problem);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  return launch_dependent(final_kernel, static_cast<unsigned>(problem.num_tokens), kThreads, 0,
                          stream, problem, chunks);
}

}  // namespace fulcrum::kernels
