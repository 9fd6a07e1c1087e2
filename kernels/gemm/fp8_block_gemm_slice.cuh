// Decode is bound by reading the weights once and by what surrounds that read: launch, latency, the
// sum over slices. So a block asks for its whole share of weights and tokens at once (cp.async,
// whole 128-byte lines), multiplies chunk by chunk as they arrive, and the blocks of a cluster sum
// their slices by pushing partial tiles into each other's shared memory. Weight rows are the 16-row
// operand of the mma, tokens the 8-column one.
#pragma once

#include <algorithm>

#include "kernels/common/async_copy.cuh"
#include "kernels/common/cluster.cuh"
#include "kernels/common/formats.h"
#include "kernels/common/mma.cuh"
#include "kernels/gemm/fp8_block_gemm_slice.h"

namespace fulcrum::kernels {

// kTokens tokens and kRows weight rows per block; kWarpsK of its eight warps share rows along k. A
// chunk is one 64-column step of every such warp; kSlots chunks are in flight.
template <int kBlockTokens, int kBlockRows, int kBlockWarpsK, int kSlots>
struct SliceShape {
  static constexpr int kTokens = kBlockTokens;
  static constexpr int kRows = kBlockRows;
  static constexpr int kWarpsK = kBlockWarpsK;
  static constexpr int kWarps = 8;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kWarpsN = kWarps / kWarpsK;
  static constexpr int kRowTiles = kRows / 16 / kWarpsN;
  static constexpr int kTokenTiles = kTokens / 8;
  static constexpr int kChunk = 64 * kWarpsK;  // Columns.
  // 64 bytes of padding put the two rows of a quarter-warp load into different banks.
  static constexpr int kPitch = kChunk + 64;
  static constexpr int kSlotBytes = (kRows + kTokens) * kPitch;
  static constexpr int kPartialPitch =
      kRows + 4;  // Floats; conflict-free for (row g, token 2t) stores.
  static constexpr int kPartialBytes = kWarpsK * kTokens * kPartialPitch * 4;
  static constexpr int kQuads = kTokens * kRows / 4;  // Groups of four rows of one token.
  static constexpr int kReceiveBytes = kQuads * 16;
  static int shared_bytes(int splits, int slice_groups) {
    return std::max(kSlots * kSlotBytes, kPartialBytes) + (splits > 1 ? kReceiveBytes + 16 : 0) +
           4 * kTokens * slice_groups;
  }
};

// Where a block stands in the launch, and its shared memory behind the slots: scales
// [slice_groups][kTokens], then the receive area and its barrier.
template <typename S>
struct SliceBlock {
  int log2_splits;
  int row0;
  int token0;
  int first_group;
  int my_groups;
  float* scales;
  float4* received;
  std::uint64_t* barrier;

  __device__ SliceBlock(const Fp8BlockGemmArgs& args, std::uint8_t* behind_slots, int slice_groups,
                        int splits_log2)
      : log2_splits(splits_log2),
        row0(blockIdx.y * S::kRows),
        token0(blockIdx.z * S::kTokens),
        first_group(blockIdx.x * slice_groups),
        my_groups(max(0, min(slice_groups, args.k / 128 - first_group))),
        scales(reinterpret_cast<float*>(behind_slots)),
        received(reinterpret_cast<float4*>(behind_slots + 4 * S::kTokens * slice_groups)),
        barrier(reinterpret_cast<std::uint64_t*>(received + S::kQuads)) {}
};

// While the first copies travel: meets the cluster, and multiplies both scales per (group, token).
// A block's rows lie within one 128-row scale block.
template <typename S>
__device__ __forceinline__ void slice_prologue(const Fp8BlockGemmArgs& args,
                                               const SliceBlock<S>& block) {
#if __CUDA_ARCH__ >= 900
  if (block.log2_splits > 0) {
    const int num_splits = 1 << block.log2_splits;
    if (threadIdx.x == 0) {
      receive_init(block.barrier, (num_splits - 1) * (S::kReceiveBytes >> block.log2_splits));
    }
    cluster_arrive();
  }
#endif
  static_assert(128 % S::kRows == 0);
  const int num_groups = args.k / 128;
  const int scale_row = block.row0 / 128 * num_groups + block.first_group;
  for (int i = threadIdx.x; i < block.my_groups * S::kTokens; i += S::kThreads) {
    const int group = i / S::kTokens;
    const int token = min(block.token0 + i % S::kTokens, args.m - 1);
    const float x_scale = __ldg(args.x_scale + static_cast<std::int64_t>(token) * num_groups +
                                block.first_group + group);
    const float weight_scale =
        args.weight_scale_format == BlockScaleFormat::kFloat
            ? __ldg(static_cast<const float*>(args.weight_scale) + scale_row + group)
            : decode_e8m0(
                  __ldg(static_cast<const std::uint8_t*>(args.weight_scale) + scale_row + group));
    block.scales[i] = x_scale * weight_scale;
  }
}

// Sums the warps' tiles, then the cluster's, and stores. All copies must have arrived: the partial
// tiles [kWarpsK][kTokens][kRows] take the slots' place.
template <typename S>
__device__ __forceinline__ void slice_epilogue(const Fp8BlockGemmArgs& args,
                                               const SliceBlock<S>& block, std::uint8_t* shared,
                                               int warp_n, int warp_k,
                                               const float (&sum)[S::kRowTiles][S::kTokenTiles][4],
                                               float unscale) {
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  [[maybe_unused]] const int rank = blockIdx.x;  // Only clusters ask for it.
  __syncthreads();
  float* partial = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
    for (int i = 0; i < S::kTokenTiles; ++i) {
      float* at = partial + (warp_k * S::kTokens + 8 * i + 2 * t) * S::kPartialPitch +
                  16 * (warp_n * S::kRowTiles + r) + g;
      at[0] = sum[r][i][0] * unscale;
      at[S::kPartialPitch] = sum[r][i][1] * unscale;
      at[8] = sum[r][i][2] * unscale;
      at[S::kPartialPitch + 8] = sum[r][i][3] * unscale;
    }
  }
  __syncthreads();

  constexpr int kQuadsPerToken = S::kRows / 4;
  const auto total_of = [&](int quad) {
    const float* at =
        partial + quad / kQuadsPerToken * S::kPartialPitch + 4 * (quad % kQuadsPerToken);
    float4 total = *reinterpret_cast<const float4*>(at);
#pragma unroll
    for (int w = 1; w < S::kWarpsK; ++w) {
      const float4 part = *reinterpret_cast<const float4*>(at + w * S::kTokens * S::kPartialPitch);
      total.x += part.x;
      total.y += part.y;
      total.z += part.z;
      total.w += part.w;
    }
    return total;
  };
  const auto store = [&](int quad, float4 total) {
    const int token = block.token0 + quad / kQuadsPerToken;
    const int row = block.row0 + 4 * (quad % kQuadsPerToken);
    if (token < args.m && row < args.n) {
      const uint2 packed = make_uint2(
          encode_bf16(total.x) | (static_cast<std::uint32_t>(encode_bf16(total.y)) << 16),
          encode_bf16(total.z) | (static_cast<std::uint32_t>(encode_bf16(total.w)) << 16));
      *reinterpret_cast<uint2*>(args.y + static_cast<std::int64_t>(token) * args.n + row) = packed;
    }
  };
#if __CUDA_ARCH__ >= 900
  if (block.log2_splits > 0) {
    const int num_splits = 1 << block.log2_splits;
    // Block p of the cluster sums the p-th share of the quads; slot s of its receive area is block
    // s's part.
    const int share = S::kQuads >> block.log2_splits;
    cluster_wait();
    for (int quad = threadIdx.x; quad < S::kQuads; quad += S::kThreads) {
      const int owner = quad / share;
      float4* slot = block.received + rank * share + (quad - owner * share);
      if (owner == rank) {
        *slot = total_of(quad);
      } else {
        push(slot, block.barrier, owner, total_of(quad));
      }
    }
    __syncthreads();
    receive_wait(block.barrier);
    for (int i = threadIdx.x; i < share; i += S::kThreads) {
      float4 total = block.received[i];
      for (int s = 1; s < num_splits; ++s) {
        const float4 part = block.received[s * share + i];
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
__global__ void __launch_bounds__(256, kMinBlocks)
    fp8_slice_kernel(const Fp8BlockGemmArgs args, const int slice_groups, const int log2_splits) {
  using S = SliceShape<kTokens, kRows, kWarpsK, kSlots>;
  extern __shared__ __align__(128) std::uint8_t shared[];
  constexpr int kWorkBytes = std::max(kSlots * S::kSlotBytes, S::kPartialBytes);
  const SliceBlock<S> block(args, shared + kWorkBytes, slice_groups, log2_splits);

  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const int warp_k = warp % kWarpsK;
  const int warp_n = warp / kWarpsK;
  const int slice_columns = 128 * block.my_groups;
  const int num_chunks = (slice_columns + S::kChunk - 1) / S::kChunk;

  // Chunks past the end of the slice fill with zeros: a zero weight adds nothing.
  constexpr int kLanesPerRow = S::kChunk / 16;
  constexpr int kRowsPerPass = S::kThreads / kLanesPerRow;
  const int copy_row = threadIdx.x / kLanesPerRow;
  const int copy_column = 16 * (threadIdx.x % kLanesPerRow);
  const auto fetch = [&](int chunk) {
    const int column = chunk * S::kChunk + copy_column;
    const bool inside = column < slice_columns;
    const std::int64_t source_column = 128 * block.first_group + (inside ? column : 0);
    std::uint8_t* slot = shared + chunk % kSlots * S::kSlotBytes + copy_column;
#pragma unroll
    for (int r = 0; r < kRows; r += kRowsPerPass) {
      const int row = r + copy_row;
      if (kRows % kRowsPerPass == 0 || row < kRows) {
        copy_async<16>(slot + row * S::kPitch,
                       args.weight +
                           static_cast<std::int64_t>(min(block.row0 + row, args.n - 1)) * args.k +
                           source_column,
                       inside);
      }
    }
#pragma unroll
    for (int r = 0; r < kTokens; r += kRowsPerPass) {
      const int token = r + copy_row;
      if (kTokens % kRowsPerPass == 0 || token < kTokens) {
        copy_async<16>(
            slot + (kRows + token) * S::kPitch,
            args.x + static_cast<std::int64_t>(min(block.token0 + token, args.m - 1)) * args.k +
                source_column,
            inside && block.token0 + token < args.m);
      }
    }
  };
#pragma unroll
  for (int c = 0; c < kSlots; ++c) {
    if (c < num_chunks) fetch(c);
    commit_copies();
  }

  slice_prologue(args, block);

  float sum[S::kRowTiles][S::kTokenTiles][4] = {};
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    wait_copies<kSlots - 1>();
    __syncthreads();
    const std::uint8_t* slot = shared + chunk % kSlots * S::kSlotBytes + 64 * warp_k + 16 * t;
    const int step = chunk * kWarpsK + warp_k;
    if (step < 2 * block.my_groups) {
      device::E4m3Rows a[S::kRowTiles][2];
#pragma unroll
      for (int r = 0; r < S::kRowTiles; ++r) {
        const int row = 16 * (warp_n * S::kRowTiles + r) + g;
        const uint4 top = *reinterpret_cast<const uint4*>(slot + row * S::kPitch);
        const uint4 bottom = *reinterpret_cast<const uint4*>(slot + (row + 8) * S::kPitch);
        a[r][0] = device::e4m3_rows(top.x, top.y, bottom.x, bottom.y);
        a[r][1] = device::e4m3_rows(top.z, top.w, bottom.z, bottom.w);
      }
      const float* step_scales = block.scales + step / 2 * kTokens + 2 * t;
      // Four independent accumulators at a time: a chain of dependent mma would wait for each
      // other's latency.
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
            const device::E4m3Column column =
                j == 0 ? device::e4m3_column(x[i].x, x[i].y) : device::e4m3_column(x[i].z, x[i].w);
#pragma unroll
            for (int r = 0; r < S::kRowTiles; ++r) device::mma_e4m3(product[i][r], a[r][j], column);
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

  wait_copies<0>();
  slice_epilogue(args, block, shared, warp_n, warp_k, sum, 1.0f / device::kE4m3Product);
}

// Raises the kernel's shared-memory limit and launches it with one cluster per row block and token
// block.
inline cudaError_t launch_slice_kernel(void (*kernel)(Fp8BlockGemmArgs, int, int),
                                       const Fp8BlockGemmArgs& args, const SlicePlan& plan,
                                       int slice_groups, int shared_bytes, int rows, int tokens,
                                       cudaStream_t stream) {
  if (const cudaError_t code =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
      code != cudaSuccess) {
    return code;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3(static_cast<unsigned>(plan.splits), static_cast<unsigned>((args.n + rows - 1) / rows),
           static_cast<unsigned>((args.m + tokens - 1) / tokens));
  config.blockDim = dim3(256);
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

template <int kTokens, int kRows, int kWarpsK, int kSlots, int kMinBlocks>
cudaError_t launch_slice(const Fp8BlockGemmArgs& args, const SlicePlan& plan, cudaStream_t stream) {
  using S = SliceShape<kTokens, kRows, kWarpsK, kSlots>;
  const int slice_groups = (args.k / 128 + plan.splits - 1) / plan.splits;
  const int shared_bytes = S::shared_bytes(plan.splits, slice_groups);
  if (shared_bytes > plan.max_shared_bytes) return cudaErrorInvalidValue;
  return launch_slice_kernel(fp8_slice_kernel<kTokens, kRows, kWarpsK, kSlots, kMinBlocks>, args,
                             plan, slice_groups, shared_bytes, kRows, kTokens, stream);
}

}  // namespace fulcrum::kernels
