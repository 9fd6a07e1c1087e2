// Small-m path and dispatch. Decode is bound by reading the weights once, so nothing sits between global
// memory and the tensor cores but registers: every warp of a block owns an interleaved share of k, loads its
// weight rows and its token chunks with 16-byte loads several steps ahead, and the block (then its cluster)
// sums the warps' tiles at the end. Weight rows are the 16-row operand of the mma, tokens the 8-column one.
#include <cooperative_groups.h>

#include <algorithm>

#include "kernels/common/formats.h"
#include "kernels/common/mma.cuh"
#include "kernels/gemm/fp8_block_gemm.h"
#include "kernels/gemm/fp8_block_gemm_tile.h"

namespace fulcrum::kernels {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kStep = 64;  // k columns per step: a quad of lanes times 16 bytes.

// One step of one lane: its chunk of 2 * kRowTiles weight rows and kTokenTiles tokens, and the scales of
// the two token columns that it accumulates per tile.
template <int kRowTiles, int kTokenTiles>
struct StepRegisters {
  uint4 weight[kRowTiles][2];
  uint4 x[kTokenTiles];
  float scale[kTokenTiles][2];
};

template <int kRowTiles, int kTokenTiles, int kDepth>
__global__ void __launch_bounds__(kThreads)
    fp8_block_gemm_kernel(const Fp8BlockGemmArgs args, const int warps_k) {
  extern __shared__ float4 shared[];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int g = lane / 4;
  const int t = lane % 4;
  const int warp_k = warp % warps_k;
  const int warps_n = kWarps / warps_k;
  const int block_rows = 16 * kRowTiles * warps_n;
  const int row0 = blockIdx.y * block_rows + 16 * kRowTiles * (warp / warps_k);
  const int token0 = blockIdx.z * 8 * kTokenTiles;
  const int num_groups = args.k / 128;
  // Splits differ by at most one group; a split may be empty of work but still takes part in the sums.
  const int first_group = num_groups * blockIdx.x / gridDim.x;
  const int end_group = num_groups * (blockIdx.x + 1) / gridDim.x;
  const int my_groups = max(0, (end_group - first_group - warp_k + warps_k - 1) / warps_k);
  const int num_steps = 2 * my_groups;

  const std::uint8_t* weight_rows[kRowTiles][2];
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      // Rows past n read row n-1 and are not stored.
      const int row = min(row0 + 16 * r + 8 * h + g, args.n - 1);
      weight_rows[r][h] = args.weight + static_cast<std::int64_t>(row) * args.k + 16 * t;
    }
  }
  const int scale_row = min(row0, args.n - 1) / 128 * num_groups;

  const auto load = [&](StepRegisters<kRowTiles, kTokenTiles>& s, int step) {
    const int group = first_group + warp_k + step / 2 * warps_k;
    const int column = 128 * group + kStep * (step % 2);
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      s.weight[r][0] = load_streaming(weight_rows[r][0] + column);
      s.weight[r][1] = load_streaming(weight_rows[r][1] + column);
    }
    const float weight_scale =
        args.weight_scale_format == BlockScaleFormat::kFloat
            ? __ldg(static_cast<const float*>(args.weight_scale) + scale_row + group)
            : decode_e8m0(
                  __ldg(static_cast<const std::uint8_t*>(args.weight_scale) + scale_row + group));
#pragma unroll
    for (int i = 0; i < kTokenTiles; ++i) {
      const int token = token0 + 8 * i + g;
      s.x[i] = token < args.m
                   ? load_cached(args.x + static_cast<std::int64_t>(token) * args.k + column + 16 * t)
                   : make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int column_token = min(token0 + 8 * i + 2 * t + j, args.m - 1);
        s.scale[i][j] = __ldg(args.x_scale + static_cast<std::int64_t>(column_token) * num_groups +
                              group) *
                        weight_scale;
      }
    }
  };

  float sum[kRowTiles][kTokenTiles][4] = {};
  const auto accumulate = [&](const StepRegisters<kRowTiles, kTokenTiles>& s) {
    std::uint32_t a[kRowTiles][4][4];
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      const std::uint32_t top[4] = {s.weight[r][0].x, s.weight[r][0].y, s.weight[r][0].z,
                                    s.weight[r][0].w};
      const std::uint32_t bottom[4] = {s.weight[r][1].x, s.weight[r][1].y, s.weight[r][1].z,
                                       s.weight[r][1].w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        unpack_e4m3(top[j], a[r][j][0], a[r][j][2]);
        unpack_e4m3(bottom[j], a[r][j][1], a[r][j][3]);
      }
    }
#pragma unroll
    for (int i = 0; i < kTokenTiles; ++i) {
      const std::uint32_t chunk[4] = {s.x[i].x, s.x[i].y, s.x[i].z, s.x[i].w};
      float product[kRowTiles][4] = {};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        std::uint32_t b0, b1;
        unpack_e4m3(chunk[j], b0, b1);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          mma_f16(product[r], a[r][j][0], a[r][j][1], a[r][j][2], a[r][j][3], b0, b1);
        }
      }
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int c = 0; c < 4; ++c) sum[r][i][c] += product[r][c] * s.scale[i][c % 2];
      }
    }
  };

  StepRegisters<kRowTiles, kTokenTiles> ring[kDepth];
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    if (d < num_steps) load(ring[d], d);
  }
  for (int step = 0; step < num_steps; step += kDepth) {
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      if (step + d < num_steps) accumulate(ring[d]);
      if (step + d + kDepth < num_steps) load(ring[d], step + d + kDepth);
    }
  }

  // Both operands were unpacked with the factor kE4m3Unpack.
  constexpr float kUnscale = 1.0f / (kE4m3Unpack * kE4m3Unpack);
  constexpr int kFragments = kRowTiles * kTokenTiles * 32;  // float4 per warp.
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int i = 0; i < kTokenTiles; ++i) {
      shared[warp * kFragments + (r * kTokenTiles + i) * 32 + lane] =
          make_float4(sum[r][i][0] * kUnscale, sum[r][i][1] * kUnscale, sum[r][i][2] * kUnscale,
                      sum[r][i][3] * kUnscale);
    }
  }
  __syncthreads();
  // Warps along k -> one tile [8 * kTokenTiles][block_rows] behind the fragments. The row pitch is padded by
  // 8 floats against bank conflicts between the token columns of a quad.
  float* tile = reinterpret_cast<float*>(shared + kWarps * kFragments);
  const int pitch = block_rows + 8;
  for (int i = threadIdx.x; i < warps_n * kFragments; i += kThreads) {
    const int n_index = i / kFragments;
    const int fragment = i % kFragments;
    float4 total = shared[n_index * warps_k * kFragments + fragment];
    for (int w = 1; w < warps_k; ++w) {
      const float4 part = shared[(n_index * warps_k + w) * kFragments + fragment];
      total.x += part.x;
      total.y += part.y;
      total.z += part.z;
      total.w += part.w;
    }
    const int lane_of = fragment % 32;
    const int row = 16 * (n_index * kRowTiles + fragment / (32 * kTokenTiles)) + lane_of / 4;
    const int token = 8 * (fragment / 32 % kTokenTiles) + 2 * (lane_of % 4);
    tile[token * pitch + row] = total.x;
    tile[(token + 1) * pitch + row] = total.y;
    tile[token * pitch + row + 8] = total.z;
    tile[(token + 1) * pitch + row + 8] = total.w;
  }

  const int num_splits = gridDim.x;
  const int rank = blockIdx.x;
#if __CUDA_ARCH__ >= 900
  namespace cg = cooperative_groups;
  if (num_splits > 1) {
    cg::this_cluster().sync();
  } else {
    __syncthreads();
  }
#else
  __syncthreads();
#endif
  const int pairs = block_rows / 2;
  const int tokens = min(8 * kTokenTiles, args.m - token0);
  for (int i = rank * kThreads + threadIdx.x; i < tokens * pairs; i += num_splits * kThreads) {
    const int token = i / pairs;
    const int row = 2 * (i % pairs);
    float2 total = *reinterpret_cast<const float2*>(tile + token * pitch + row);
#if __CUDA_ARCH__ >= 900
    for (int other = 1; other < num_splits; ++other) {
      const float* remote = cg::this_cluster().map_shared_rank(tile, (rank + other) % num_splits);
      const float2 part = *reinterpret_cast<const float2*>(remote + token * pitch + row);
      total.x += part.x;
      total.y += part.y;
    }
#endif
    const int out_row = blockIdx.y * block_rows + row;
    if (out_row < args.n) {
      const std::uint32_t packed = encode_bf16(total.x) |
                                   (static_cast<std::uint32_t>(encode_bf16(total.y)) << 16);
      *reinterpret_cast<std::uint32_t*>(
          args.y + static_cast<std::int64_t>(token0 + token) * args.n + out_row) = packed;
    }
  }
#if __CUDA_ARCH__ >= 900
  // No block may leave while its neighbours still read its shared memory.
  if (num_splits > 1) cg::this_cluster().sync();
#endif
}

template <int kRowTiles, int kTokenTiles, int kDepth>
cudaError_t launch(const Fp8BlockGemmArgs& args, int warps_k, int splits, cudaStream_t stream) {
  const auto kernel = fp8_block_gemm_kernel<kRowTiles, kTokenTiles, kDepth>;
  const int block_rows = 16 * kRowTiles * (kWarps / warps_k);
  const std::size_t shared_bytes = sizeof(float4) * kWarps * kRowTiles * kTokenTiles * 32 +
                                   sizeof(float) * 8 * kTokenTiles * (block_rows + 8);
  if (const cudaError_t code = cudaFuncSetAttribute(
          kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
      code != cudaSuccess) {
    return code;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(splits),
                        static_cast<unsigned>((args.n + block_rows - 1) / block_rows),
                        static_cast<unsigned>((args.m + 8 * kTokenTiles - 1) / (8 * kTokenTiles)));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(splits), 1, 1};
  config.attrs = &cluster;
  config.numAttrs = splits > 1 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, args, warps_k);
}

struct DeviceFacts {
  int major = 0;
  int num_sms = 0;
};

cudaError_t query(DeviceFacts& facts) {
  int device = 0;
  if (const cudaError_t code = cudaGetDevice(&device); code != cudaSuccess) return code;
  if (const cudaError_t code =
          cudaDeviceGetAttribute(&facts.major, cudaDevAttrComputeCapabilityMajor, device);
      code != cudaSuccess) {
    return code;
  }
  return cudaDeviceGetAttribute(&facts.num_sms, cudaDevAttrMultiProcessorCount, device);
}

}  // namespace

Claim fp8_block_gemm_claim(int m, int n, int k, BlockScaleFormat weight_scale_format) {
  const double weight_scales = (n + 127.0) / 128.0 * (k / 128.0) *
                               (weight_scale_format == BlockScaleFormat::kFloat ? 4.0 : 1.0);
  const double x = m * (k + 4.0 * (k / 128.0));
  return {.bytes = 1.0 * n * k + weight_scales + x + 2.0 * m * n, .flop = 2.0 * m * n * k};
}

cudaError_t launch_fp8_block_gemm(const Fp8BlockGemmArgs& args, cudaStream_t stream) {
  if (args.m < 1 || args.n < 16 || args.n % 16 != 0 || args.k < 128 || args.k % 128 != 0) {
    return cudaErrorInvalidValue;
  }
  DeviceFacts facts;
  if (const cudaError_t code = query(facts); code != cudaSuccess) return code;
  // The tile path wants enough 128 x 128 tiles to occupy half of the device.
  const int tiles = ((args.m + 127) / 128) * ((args.n + 127) / 128);
  if (args.m > 64 && args.split_k == 0 && args.warps_k == 0 && 2 * tiles >= facts.num_sms) {
    return launch_fp8_block_gemm_tile(args, stream);
  }

  const int num_groups = args.k / 128;
  // As many warps along k as there are groups for, so that few groups are serial in one warp.
  int warps_k = args.warps_k == 0 ? kWarps : args.warps_k;
  if (warps_k != 1 && warps_k != 2 && warps_k != 4 && warps_k != 8) return cudaErrorInvalidValue;
  while (args.warps_k == 0 && warps_k > num_groups) warps_k /= 2;
  const int row_tiles = args.m > 16 ? 2 : 1;
  const int block_rows = 16 * row_tiles * (kWarps / warps_k);
  const int row_blocks = (args.n + block_rows - 1) / block_rows;
  int splits = args.split_k;
  if (splits == 0) {
    splits = 1;
    // Split while blocks do not fill the device and every warp keeps a group.
    while (splits < 8 && row_blocks * splits * 2 <= facts.num_sms &&
           num_groups >= 2 * splits * warps_k) {
      splits *= 2;
    }
  }
  if (facts.major < 9) splits = 1;
  if (splits != 1 && splits != 2 && splits != 4 && splits != 8) return cudaErrorInvalidValue;
  if (args.m <= 8) return launch<1, 1, 4>(args, warps_k, splits, stream);
  if (args.m <= 16) return launch<1, 2, 4>(args, warps_k, splits, stream);
  if (args.m <= 32) return launch<2, 4, 2>(args, warps_k, splits, stream);
  return launch<2, 8, 2>(args, warps_k, splits, stream);
}

}  // namespace fulcrum::kernels
