// Tiles of 128 weight rows x 128 tokens, one 128-wide scale group of k per stage, three stages of
// cp.async in shared memory. Eight warps, each 32 rows x 64 tokens.
#include <cuda_pipeline.h>

#include "kernels/common/formats.h"
#include "kernels/common/mma.cuh"
#include "kernels/gemm/fp8_block_gemm_tile.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;
constexpr int kStages = 3;
constexpr int kOperandBytes = kTile * 128;
constexpr int kStageBytes = 2 * kOperandBytes;
constexpr int kRowTiles = 2;
constexpr int kTokenTiles = 8;

// A row is eight 16-byte chunks. A quarter warp reads four chunks of two neighbouring rows:
// swapping the halves of odd rows puts them into different banks.
__device__ __forceinline__ int chunk_offset(int row, int chunk) {
  return row * 128 + 16 * (chunk ^ ((row & 1) * 4));
}

// Rows past `num_rows` repeat the last one; their results are not stored.
__device__ __forceinline__ void copy_operand(char* shared, const std::uint8_t* rows, int first_row,
                                             int num_rows, int k, int column) {
#pragma unroll
  for (int i = 0; i < kTile * 8 / kThreads; ++i) {
    const int index = threadIdx.x + i * kThreads;
    const int row = index / 8;
    const int chunk = index % 8;
    const int source = min(first_row + row, num_rows - 1);
    __pipeline_memcpy_async(shared + chunk_offset(row, chunk),
                            rows + static_cast<std::int64_t>(source) * k + column + 16 * chunk, 16);
  }
}

__global__ void __launch_bounds__(kThreads)
    fp8_block_gemm_tile_kernel(const Fp8BlockGemmArgs args) {
  extern __shared__ __align__(128) char stages[];
  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const int row0 = blockIdx.x * kTile;
  const int token0 = blockIdx.y * kTile;
  const int warp_row = 32 * (warp % 4);
  const int warp_token = 64 * (warp / 4);
  const int num_groups = args.k / 128;

  const auto fetch = [&](int group) {
    if (group < num_groups) {
      char* stage = stages + group % kStages * kStageBytes;
      copy_operand(stage, args.weight, row0, args.n, args.k, 128 * group);
      copy_operand(stage + kOperandBytes, args.x, token0, args.m, args.k, 128 * group);
    }
    __pipeline_commit();  // An empty group keeps the count of those in flight right.
  };

  float sum[kRowTiles][kTokenTiles][4] = {};
  for (int s = 0; s < kStages - 1; ++s) fetch(s);
  for (int group = 0; group < num_groups; ++group) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    fetch(group + kStages - 1);
    const char* weight = stages + group % kStages * kStageBytes;
    const char* x = weight + kOperandBytes;
    const int scale_index = blockIdx.x * num_groups + group;
    const float weight_scale =
        args.weight_scale_format == BlockScaleFormat::kFloat
            ? __ldg(static_cast<const float*>(args.weight_scale) + scale_index)
            : decode_e8m0(__ldg(static_cast<const std::uint8_t*>(args.weight_scale) + scale_index));
    float product[kRowTiles][kTokenTiles][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      device::E4m3Rows a[kRowTiles][2];
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        const int row = warp_row + 16 * r + g;
        const uint4 top = *reinterpret_cast<const uint4*>(weight + chunk_offset(row, 4 * half + t));
        const uint4 bottom =
            *reinterpret_cast<const uint4*>(weight + chunk_offset(row + 8, 4 * half + t));
        a[r][0] = device::e4m3_rows(top.x, top.y, bottom.x, bottom.y);
        a[r][1] = device::e4m3_rows(top.z, top.w, bottom.z, bottom.w);
      }
#pragma unroll
      for (int i = 0; i < kTokenTiles; ++i) {
        const uint4 v =
            *reinterpret_cast<const uint4*>(x + chunk_offset(warp_token + 8 * i + g, 4 * half + t));
        const device::E4m3Column low = device::e4m3_column(v.x, v.y);
        const device::E4m3Column high = device::e4m3_column(v.z, v.w);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          device::mma_e4m3(product[r][i], a[r][0], low);
          device::mma_e4m3(product[r][i], a[r][1], high);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kTokenTiles; ++i) {
      const int token = token0 + warp_token + 8 * i + 2 * t;
      const float* scales = args.x_scale + group;
      const float scale0 =
          weight_scale *
          __ldg(scales + static_cast<std::int64_t>(min(token, args.m - 1)) * num_groups);
      const float scale1 =
          weight_scale *
          __ldg(scales + static_cast<std::int64_t>(min(token + 1, args.m - 1)) * num_groups);
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        sum[r][i][0] += product[r][i][0] * scale0;
        sum[r][i][1] += product[r][i][1] * scale1;
        sum[r][i][2] += product[r][i][2] * scale0;
        sum[r][i][3] += product[r][i][3] * scale1;
      }
    }
  }

  constexpr float kUnscale = 1.0f / device::kE4m3Product;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int i = 0; i < kTokenTiles; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int row = row0 + warp_row + 16 * r + 8 * (c / 2) + g;
        const int token = token0 + warp_token + 8 * i + 2 * t + c % 2;
        if (row < args.n && token < args.m) {
          args.y[static_cast<std::int64_t>(token) * args.n + row] =
              encode_bf16(sum[r][i][c] * kUnscale);
        }
      }
    }
  }
}

}  // namespace

cudaError_t launch_fp8_block_gemm_tile(const Fp8BlockGemmArgs& args, cudaStream_t stream) {
  constexpr int kSharedBytes = kStages * kStageBytes;
  if (const cudaError_t code = cudaFuncSetAttribute(
          fp8_block_gemm_tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
      code != cudaSuccess) {
    return code;
  }
  const dim3 grid(static_cast<unsigned>((args.n + kTile - 1) / kTile),
                  static_cast<unsigned>((args.m + kTile - 1) / kTile));
  fp8_block_gemm_tile_kernel<<<grid, kThreads, kSharedBytes, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
