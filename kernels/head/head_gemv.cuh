// Tensor cores for a handful of tokens: 16 matrix rows are the M of m16n8k16, eight tokens its N.
// The order of the depth inside a step of 32 does not matter to the sum, so a lane takes eight
// consecutive values of its row (one 16-byte load) as the fragments of two instructions, and the
// same eight of its token. Matrix values go from memory to registers. Up to 16 tokens come from L1
// in the same way; more would take its whole bandwidth, so head_gemv_staged.cu keeps them in shared
// memory.
#pragma once

#include "kernels/common/mma.cuh"
#include "kernels/head/head_launch.h"

namespace fulcrum::kernels::detail {

inline constexpr int kGemvWarps = 8;
inline constexpr int kGemvStep = 32;   // depth per 16-byte load of four lanes
inline constexpr int kGemvUnroll = 4;  // steps whose loads are in flight together

template <int kTokenTiles, int kRowTiles, int kSplitDepth>
__global__ void __launch_bounds__(32 * kGemvWarps, 1) head_gemv_kernel(HeadGemvProblem problem) {
  constexpr int kRowGroups = kGemvWarps / kSplitDepth;
  constexpr int kRows = 16 * kRowTiles;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const int row0 = (static_cast<int>(blockIdx.x) * kRowGroups + warp / kSplitDepth) * kRows;
  const int token0 = static_cast<int>(blockIdx.y) * 8 * kTokenTiles;
  const int depth = problem.depth;
  const int depth_per_warp = depth / kSplitDepth;
  const int begin = (warp % kSplitDepth) * depth_per_warp + 8 * pair;

  // Rows and tokens beyond the end repeat the last one; their results are not stored.
  const std::uint16_t* weights[kRowTiles][2];
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = min(row0 + 16 * r + 8 * h + group, problem.num_rows - 1);
      weights[r][h] = problem.weight + static_cast<std::int64_t>(row) * depth + begin;
    }
  }
  const std::uint16_t* tokens[kTokenTiles];
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) {
    const int token = min(token0 + 8 * n + group, problem.num_tokens - 1);
    tokens[n] = problem.x + static_cast<std::int64_t>(token) * depth + begin;
  }

  float acc[kRowTiles][kTokenTiles][4] = {};
  // Unrolled further, the loads of two iterations would cost the registers of a second block per
  // SM.
#pragma unroll 1
  for (int k = 0; k < depth_per_warp; k += kGemvStep * kGemvUnroll) {
    uint4 w[kGemvUnroll][kRowTiles][2];
#pragma unroll
    for (int u = 0; u < kGemvUnroll; ++u) {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        w[u][r][0] = device::load_streaming(weights[r][0] + k + kGemvStep * u);
        w[u][r][1] = device::load_streaming(weights[r][1] + k + kGemvStep * u);
      }
    }
#pragma unroll
    for (int u = 0; u < kGemvUnroll; ++u) {
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
        const uint4 x = __ldg(reinterpret_cast<const uint4*>(tokens[n] + k + kGemvStep * u));
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          const std::uint32_t a0[4] = {w[u][r][0].x, w[u][r][1].x, w[u][r][0].y, w[u][r][1].y};
          const std::uint32_t a1[4] = {w[u][r][0].z, w[u][r][1].z, w[u][r][0].w, w[u][r][1].w};
          device::mma_bf16(acc[r][n], a0, x.x, x.y);
          device::mma_bf16(acc[r][n], a1, x.z, x.w);
        }
      }
    }
  }

  const auto store = [&](int r, int n, int i, int of_lane, float value) {
    const int row = row0 + 16 * r + 8 * (i / 2) + of_lane / 4;
    const int token = token0 + 8 * n + 2 * (of_lane % 4) + i % 2;
    if (row < problem.num_rows && token < problem.num_tokens) {
      problem.out[static_cast<std::int64_t>(token) * problem.num_rows + row] = value;
    }
  };
  if constexpr (kSplitDepth == 1) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) store(r, n, i, lane, acc[r][n][i]);
      }
    }
  } else {
    static_assert(kSplitDepth == kGemvWarps && kRowTiles == 1);
    __shared__ float partial[kGemvWarps][4 * kTokenTiles][32];
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) partial[warp][4 * n + i][lane] = acc[0][n][i];
    }
    __syncthreads();
    for (int j = warp; j < 4 * kTokenTiles; j += kGemvWarps) {
      float sum = 0.0F;
#pragma unroll
      for (int s = 0; s < kGemvWarps; ++s) sum += partial[s][j][lane];
      store(0, j / 4, j % 4, lane, sum);
    }
  }
}

template <int kTokenTiles, int kRowTiles, int kSplitDepth>
cudaError_t launch_head_gemv(const HeadGemvProblem& problem, cudaStream_t stream) {
  constexpr int kRowsPerBlock = 16 * kRowTiles * (kGemvWarps / kSplitDepth);
  constexpr int kTokensPerBlock = 8 * kTokenTiles;
  const dim3 grid(
      static_cast<unsigned>((problem.num_rows + kRowsPerBlock - 1) / kRowsPerBlock),
      static_cast<unsigned>((problem.num_tokens + kTokensPerBlock - 1) / kTokensPerBlock));
  head_gemv_kernel<kTokenTiles, kRowTiles, kSplitDepth>
      <<<grid, 32 * kGemvWarps, 0, stream>>>(problem);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels::detail
