// Many rows and more than 16 tokens: as head_gemv.cuh, but the tokens' values of 128 depth
// positions at a time are staged in shared memory by the whole block, one chunk ahead.
#include "kernels/common/async_copy.cuh"
#include "kernels/common/mma.cuh"
#include "kernels/head/head_launch.h"

namespace fulcrum::kernels::detail {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kRowTiles = 2;  // of 16 rows per warp
constexpr int kRowsPerBlock = 16 * kRowTiles * kWarps;
constexpr int kStep = 32;  // depth per 16-byte load of four lanes
constexpr int kSteps = 4;
constexpr int kChunk = kStep * kSteps;
// Two rows of four lanes' 16-byte reads fall into different halves of the banks: 64 modulo 128
// bytes.
constexpr int kTokenStride = kChunk + 32;

template <int kTokenTiles>
__device__ __forceinline__ void stage_tokens(std::uint16_t (&staged)[8 * kTokenTiles][kTokenStride],
                                             const HeadGemvProblem& problem, int token0,
                                             int depth0) {
  constexpr int kWordsPerToken = kChunk / 8;
  for (int i = static_cast<int>(threadIdx.x); i < 8 * kTokenTiles * kWordsPerToken; i += kThreads) {
    const int row = i / kWordsPerToken;
    const int word = i % kWordsPerToken;
    // Zeros beyond the last token: repeating its values would make one L2 slice the bottleneck.
    const int token = token0 + row;
    const bool valid = token < problem.num_tokens;
    copy_async<16>(&staged[row][8 * word],
                   problem.x + static_cast<std::int64_t>(valid ? token : 0) * problem.depth +
                       depth0 + 8 * word,
                   valid);
  }
  commit_copies();
}

template <int kTokenTiles>
__global__ void __launch_bounds__(kThreads) head_gemv_staged_kernel(HeadGemvProblem problem) {
  __shared__ __align__(16) std::uint16_t staged[2][8 * kTokenTiles][kTokenStride];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const int row0 = static_cast<int>(blockIdx.x) * kRowsPerBlock + warp * 16 * kRowTiles;
  const int token0 = static_cast<int>(blockIdx.y) * 8 * kTokenTiles;
  const std::uint16_t* weights[kRowTiles][2];
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      // Rows beyond the end repeat the last one; their results are not stored.
      const int row = min(row0 + 16 * r + 8 * h + group, problem.num_rows - 1);
      weights[r][h] = problem.weight + static_cast<std::int64_t>(row) * problem.depth + 8 * pair;
    }
  }
  float acc[kRowTiles][kTokenTiles][4] = {};
  stage_tokens<kTokenTiles>(staged[0], problem, token0, 0);
  int stage = 0;
#pragma unroll 1
  for (int k = 0; k < problem.depth; k += kChunk) {
    uint4 w[kSteps][kRowTiles][2];
#pragma unroll
    for (int u = 0; u < kSteps; ++u) {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        w[u][r][0] = device::load_streaming(weights[r][0] + k + kStep * u);
        w[u][r][1] = device::load_streaming(weights[r][1] + k + kStep * u);
      }
    }
    if (k + kChunk < problem.depth) {
      stage_tokens<kTokenTiles>(staged[stage ^ 1], problem, token0, k + kChunk);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < kSteps; ++u) {
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
        const uint4 x =
            *reinterpret_cast<const uint4*>(&staged[stage][8 * n + group][kStep * u + 8 * pair]);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          const std::uint32_t a0[4] = {w[u][r][0].x, w[u][r][1].x, w[u][r][0].y, w[u][r][1].y};
          const std::uint32_t a1[4] = {w[u][r][0].z, w[u][r][1].z, w[u][r][0].w, w[u][r][1].w};
          device::mma_bf16(acc[r][n], a0, x.x, x.y);
          device::mma_bf16(acc[r][n], a1, x.z, x.w);
        }
      }
    }
    __syncthreads();
    stage ^= 1;
  }
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = row0 + 16 * r + 8 * (i / 2) + group;
        const int token = token0 + 8 * n + 2 * pair + i % 2;
        if (row < problem.num_rows && token < problem.num_tokens) {
          problem.out[static_cast<std::int64_t>(token) * problem.num_rows + row] = acc[r][n][i];
        }
      }
    }
  }
}

}  // namespace

template <int kTokenTiles>
cudaError_t launch_head_gemv_staged(const HeadGemvProblem& problem, cudaStream_t stream) {
  constexpr int kTokensPerBlock = 8 * kTokenTiles;
  const dim3 grid(
      static_cast<unsigned>((problem.num_rows + kRowsPerBlock - 1) / kRowsPerBlock),
      static_cast<unsigned>((problem.num_tokens + kTokensPerBlock - 1) / kTokensPerBlock));
  head_gemv_staged_kernel<kTokenTiles><<<grid, kThreads, 0, stream>>>(problem);
  return cudaGetLastError();
}

template cudaError_t launch_head_gemv_staged<4>(const HeadGemvProblem&, cudaStream_t);
template cudaError_t launch_head_gemv_staged<8>(const HeadGemvProblem&, cudaStream_t);

}  // namespace fulcrum::kernels::detail
