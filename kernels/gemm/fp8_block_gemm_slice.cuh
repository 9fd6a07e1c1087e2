// Decode is bound by reading the weights once and by what surrounds that read: launch, latency, the sum over
// slices. So a block asks for its whole share of weights and tokens at once (cp.async, whole 128-byte lines),
// multiplies chunk by chunk as they arrive, and the blocks of a cluster sum their slices by pushing partial
// tiles into each other's shared memory. Weight rows are the 16-row operand of the mma, tokens the 8-column one.
#pragma once

#include <algorithm>

#include "kernels/common/async_copy.cuh"
#include "kernels/common/cluster.cuh"
#include "kernels/common/formats.h"
#include "kernels/common/mma.cuh"
#include "kernels/gemm/fp8_block_gemm_slice.h"

namespace fulcrum::kernels {

// kTokens tokens and kRows weight rows per block; kWarpsK of its eight warps share rows along k. A chunk is one
// 64-column step of every such warp; kSlots chunks are in flight.
template <int kTokens, int kRows, int kWarpsK, int kSlots, int kMinBlocks>
struct SliceShape {
  static constexpr int kWarps = 8;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kWarpsN = kWarps / kWarpsK;
  static constexpr int kRowTiles = kRows / 16 / kWarpsN;
  static constexpr int kTokenTiles = kTokens / 8;
  static constexpr int kChunk = 64 * kWarpsK;  // Columns.
  // 64 bytes of padding put the two rows of a quarter-warp load into different banks.
  static constexpr int kPitch = kChunk + 64;
  static constexpr int kSlotBytes = (kRows + kTokens) * kPitch;
  static constexpr int kPartialPitch = kRows + 4;  // Floats; conflict-free for (row g, token 2t) stores.
  static constexpr int kPartialBytes = kWarpsK * kTokens * kPartialPitch * 4;
  static constexpr int kQuads = kTokens * kRows / 4;  // Groups of four rows of one token.
  static constexpr int kReceiveBytes = kQuads * 16;
  static int shared_bytes(int splits, int slice_groups) {
    return std::max(kSlots * kSlotBytes, kPartialBytes) + (splits > 1 ? kReceiveBytes + 16 : 0) +
           4 * kTokens * slice_groups;
  }
};

template <int kTokens, int kRows, int kWarpsK, int kSlots, int kMinBlocks>
__global__ void __launch_bounds__(256, kMinBlocks)
    fp8_slice_kernel(const Fp8BlockGemmArgs args, const int slice_groups, const int log2_splits) {
  using S = SliceShape<kTokens, kRows, kWarpsK, kSlots, kMinBlocks>;
  extern __shared__ __align__(128) std::uint8_t shared[];
  constexpr int kWorkBytes = std::max(kSlots * S::kSlotBytes, S::kPartialBytes);
  [[maybe_unused]] const int num_splits = 1 << log2_splits;
  float* scales = reinterpret_cast<float*>(shared + kWorkBytes);  // [slice_groups][kTokens].
  auto* received = reinterpret_cast<float4*>(shared + kWorkBytes + 4 * kTokens * slice_groups);
  auto* barrier = reinterpret_cast<std::uint64_t*>(received + S::kQuads);

  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const int warp_k = warp % kWarpsK;
  const int warp_n = warp / kWarpsK;
  const int rank = blockIdx.x;
  const int row0 = blockIdx.y * kRows;
  const int token0 = blockIdx.z * kTokens;
  const int num_groups = args.k / 128;
  const int first_group = rank * slice_groups;
  const int my_groups = max(0, min(slice_groups, num_groups - first_group));
  const int slice_columns = 128 * my_groups;
  const int num_chunks = (slice_columns + S::kChunk - 1) / S::kChunk;

  // Chunks past the end of the slice fill with zeros: a zero weight adds nothing.
  constexpr int kLanesPerRow = S::kChunk / 16;
  constexpr int kRowsPerPass = S::kThreads / kLanesPerRow;
  const int copy_row = threadIdx.x / kLanesPerRow;
  const int copy_column = 16 * (threadIdx.x % kLanesPerRow);
  const auto fetch = [&](int chunk) {
    const int column = chunk * S::kChunk + copy_column;
    const bool inside = column < slice_columns;
    const std::int64_t source_column = 128 * first_group + (inside ? column : 0);
    std::uint8_t* slot = shared + chunk % kSlots * S::kSlotBytes + copy_column;
#pragma unroll
    for (int r = 0; r < kRows; r += kRowsPerPass) {
      const int row = r + copy_row;
      if (kRows % kRowsPerPass == 0 || row < kRows) {
        copy_async<16>(slot + row * S::kPitch,
                args.weight + static_cast<std::int64_t>(min(row0 + row, args.n - 1)) * args.k +
                    source_column,
                inside);
      }
    }
#pragma unroll
    for (int r = 0; r < kTokens; r += kRowsPerPass) {
      const int token = r + copy_row;
      if (kTokens % kRowsPerPass == 0 || token < kTokens) {
        copy_async<16>(slot + (kRows + token) * S::kPitch,
                args.x + static_cast<std::int64_t>(min(token0 + token, args.m - 1)) * args.k +
                    source_column,
                inside && token0 + token < args.m);
      }
    }
  };
#pragma unroll
  for (int c = 0; c < kSlots; ++c) {
    if (c < num_chunks) fetch(c);
    commit_copies();
  }

#if __CUDA_ARCH__ >= 900
  if (num_splits > 1) {
    if (threadIdx.x == 0) {
      receive_init(barrier, (num_splits - 1) * (S::kReceiveBytes >> log2_splits));
    }
    cluster_arrive();
  }
#endif
  // While the copies travel: the product of both scales per (group, token). A block's rows lie within one
  // 128-row scale block.
  static_assert(128 % kRows == 0);
  const int scale_row = row0 / 128 * num_groups + first_group;
  for (int i = threadIdx.x; i < my_groups * kTokens; i += S::kThreads) {
    const int group = i / kTokens;
    const int token = min(token0 + i % kTokens, args.m - 1);
    const float x_scale =
        __ldg(args.x_scale + static_cast<std::int64_t>(token) * num_groups + first_group + group);
    const float weight_scale =
        args.weight_scale_format == BlockScaleFormat::kFloat
            ? __ldg(static_cast<const float*>(args.weight_scale) + scale_row + group)
            : decode_e8m0(
                  __ldg(static_cast<const std::uint8_t*>(args.weight_scale) + scale_row + group));
    scales[i] = x_scale * weight_scale;
  }

  float sum[S::kRowTiles][S::kTokenTiles][4] = {};
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    wait_copies<kSlots - 1>();
    __syncthreads();
    const std::uint8_t* slot = shared + chunk % kSlots * S::kSlotBytes + 64 * warp_k + 16 * t;
    const int step = chunk * kWarpsK + warp_k;
    if (step < 2 * my_groups) {
      E4m3Rows a[S::kRowTiles][2];
#pragma unroll
      for (int r = 0; r < S::kRowTiles; ++r) {
        const int row = 16 * (warp_n * S::kRowTiles + r) + g;
        const uint4 top = *reinterpret_cast<const uint4*>(slot + row * S::kPitch);
        const uint4 bottom = *reinterpret_cast<const uint4*>(slot + (row + 8) * S::kPitch);
        a[r][0] = e4m3_rows(top.x, top.y, bottom.x, bottom.y);
        a[r][1] = e4m3_rows(top.z, top.w, bottom.z, bottom.w);
      }
      const float* step_scales = scales + step / 2 * kTokens + 2 * t;
      // Four independent accumulators at a time: a chain of dependent mma would wait for each other's latency.
      constexpr int kTogether = std::min(S::kTokenTiles, std::max(1, 4 / S::kRowTiles));
#pragma unroll
      for (int i0 = 0; i0 < S::kTokenTiles; i0 += kTogether) {
        uint4 x[kTogether];
        float product[kTogether][S::kRowTiles][4] = {};
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          x[i] = *reinterpret_cast<const uint4*>(slot + (kRows + 8 * (i0 + i) + g) * S::kPitch);
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
          for (int i = 0; i < kTogether; ++i) {
            const E4m3Column column =
                j == 0 ? e4m3_column(x[i].x, x[i].y) : e4m3_column(x[i].z, x[i].w);
#pragma unroll
            for (int r = 0; r < S::kRowTiles; ++r) mma_e4m3(product[i][r], a[r][j], column);
          }
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          const float2 scale = *reinterpret_cast<const float2*>(step_scales + 8 * (i0 + i));
#pragma unroll
          for (int r = 0; r < S::kRowTiles; ++r) {
            sum[r][i0 + i][0] += product[i][r][0] * scale.x;
            sum[r][i0 + i][1] += product[i][r][1] * scale.y;
            sum[r][i0 + i][2] += product[i][r][2] * scale.x;
            sum[r][i0 + i][3] += product[i][r][3] * scale.y;
          }
        }
      }
    }
    if (chunk + kSlots < num_chunks) {
      __syncthreads();  // Every warp has read the slot that is filled next.
      fetch(chunk + kSlots);
    }
    commit_copies();
  }

  // Partial tiles [kWarpsK][kTokens][kRows] over the slots.
  wait_copies<0>();
  __syncthreads();
  constexpr float kUnscale = 1.0f / kE4m3Product;
  float* partial = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
    for (int i = 0; i < S::kTokenTiles; ++i) {
      float* at = partial + (warp_k * kTokens + 8 * i + 2 * t) * S::kPartialPitch +
                  16 * (warp_n * S::kRowTiles + r) + g;
      at[0] = sum[r][i][0] * kUnscale;
      at[S::kPartialPitch] = sum[r][i][1] * kUnscale;
      at[8] = sum[r][i][2] * kUnscale;
      at[S::kPartialPitch + 8] = sum[r][i][3] * kUnscale;
    }
  }
  __syncthreads();

  constexpr int kQuadsPerToken = kRows / 4;
  const auto total_of = [&](int quad) {
    const float* at = partial + quad / kQuadsPerToken * S::kPartialPitch + 4 * (quad % kQuadsPerToken);
    float4 total = *reinterpret_cast<const float4*>(at);
#pragma unroll
    for (int w = 1; w < kWarpsK; ++w) {
      const float4 part =
          *reinterpret_cast<const float4*>(at + w * kTokens * S::kPartialPitch);
      total.x += part.x;
      total.y += part.y;
      total.z += part.z;
      total.w += part.w;
    }
    return total;
  };
  const auto store = [&](int quad, float4 total) {
    const int token = token0 + quad / kQuadsPerToken;
    const int row = row0 + 4 * (quad % kQuadsPerToken);
    if (token < args.m && row < args.n) {
      const uint2 packed = make_uint2(
          encode_bf16(total.x) | (static_cast<std::uint32_t>(encode_bf16(total.y)) << 16),
          encode_bf16(total.z) | (static_cast<std::uint32_t>(encode_bf16(total.w)) << 16));
      *reinterpret_cast<uint2*>(args.y + static_cast<std::int64_t>(token) * args.n + row) = packed;
    }
  };
#if __CUDA_ARCH__ >= 900
  if (num_splits > 1) {
    // Block p of the cluster sums the p-th share of the quads; slot s of its receive area is block s's part.
    const int share = S::kQuads >> log2_splits;
    cluster_wait();
    for (int quad = threadIdx.x; quad < S::kQuads; quad += S::kThreads) {
      const int owner = quad / share;
      float4* slot = received + rank * share + (quad - owner * share);
      if (owner == rank) {
        *slot = total_of(quad);
      } else {
        push(slot, barrier, owner, total_of(quad));
      }
    }
    __syncthreads();
    receive_wait(barrier);
    for (int i = threadIdx.x; i < share; i += S::kThreads) {
      float4 total = received[i];
      for (int s = 1; s < num_splits; ++s) {
        const float4 part = received[s * share + i];
        total.x += part.x;
        total.y += part.y;
        total.z += part.z;
        total.w += part.w;
      }
      store(rank * share + i, total);
    }
    return;
  }
#endif
  for (int quad = threadIdx.x; quad < S::kQuads; quad += S::kThreads) store(quad, total_of(quad));
}

template <int kTokens, int kRows, int kWarpsK, int kSlots, int kMinBlocks>
cudaError_t launch_slice(const Fp8BlockGemmArgs& args, const SlicePlan& plan, cudaStream_t stream) {
  using S = SliceShape<kTokens, kRows, kWarpsK, kSlots, kMinBlocks>;
  const auto kernel = fp8_slice_kernel<kTokens, kRows, kWarpsK, kSlots, kMinBlocks>;
  const int slice_groups = (args.k / 128 + plan.splits - 1) / plan.splits;
  const int shared_bytes = S::shared_bytes(plan.splits, slice_groups);
  if (shared_bytes > plan.max_shared_bytes) return cudaErrorInvalidValue;
  if (const cudaError_t code = cudaFuncSetAttribute(
          kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
      code != cudaSuccess) {
    return code;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(plan.splits),
                        static_cast<unsigned>((args.n + kRows - 1) / kRows),
                        static_cast<unsigned>((args.m + kTokens - 1) / kTokens));
  config.blockDim = dim3(S::kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(plan.splits), 1, 1};
  config.attrs = &cluster;
  config.numAttrs = plan.splits > 1 ? 1 : 0;
  int log2_splits = 0;
  while (1 << log2_splits < plan.splits) ++log2_splits;
  return cudaLaunchKernelEx(&config, kernel, args, slice_groups, log2_splits);
}

}  // namespace fulcrum::kernels
