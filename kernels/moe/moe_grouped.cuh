// Grouped expert GEMMs. The work of a launch is a list of units (used expert, row block, up to
// kTokens of its tokens), and the resident blocks deal it out among themselves. A block sees its
// units as one stream of equal chunks of weights: a ring of shared-memory slots is always being
// filled, across unit boundaries too, so neither the search for the next expert nor a unit's sums
// leave memory idle. Weights are decoded to BF16 in registers and multiplied with the expert's
// tokens, which come from L1/L2 straight into fragments (there are few: 8 * kTokenTiles at a time).
//
// What bounds it: instructions. A chunk of 16 KiB is 4096 words of eight codes at 13 instructions,
// 323 instructions a warp with products, loads and copies; ncu saw 2.5 of 4 issue slots busy at 66
// % of DRAM's peak, and fewer instructions (431 before codes were repacked) have always been time.
#pragma once

#include <algorithm>

#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/mma.cuh"
#include "kernels/moe/moe_fp4.cuh"
#include "kernels/moe/moe_grouped_fetch.cuh"
#include "kernels/moe/moe_layout.cuh"
#include "kernels/moe/moe_parts.h"

namespace fulcrum::kernels {

// Where a lane's part of the warp's first row lies in a slot.
struct LaneOffsets {
  int data;
  int scales;
};

// A lane's values of the warp's 128 columns of a chunk, of one token per tile.
template <int kTokenTiles>
using TokenPieces = uint4[kTokenTiles][4];

template <int kTokenTiles>
__device__ __forceinline__ void load_tokens(const std::uint16_t* const (&x_rows)[kTokenTiles],
                                            TokenPieces<kTokenTiles>& x) {
#pragma unroll
  for (int i = 0; i < kTokenTiles; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) x[i][j] = device::load_cached(x_rows[i] + 32 * j);
  }
}

// Fragments of one chunk: products of the warp's two row tiles with its tokens.
template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
__device__ __forceinline__ void multiply_chunk(
    const typename GroupedShape<kFormat, kGateUp, kTokenTiles>::Shared& shared, int slot,
    const LaneOffsets& at, const TokenPieces<kTokenTiles>& x, float (&sum)[2][kTokenTiles][4]) {
  using S = GroupedShape<kFormat, kGateUp, kTokenTiles>;
  const std::uint8_t* data = shared.data[slot] + at.data;
  const std::uint8_t* scales = shared.scales[slot] + at.scales;
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
    std::uint32_t words[2][4];
    std::uint32_t multiplier[2][2];  // Of words 0-1 and 2-3.
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = 16 * r + 8 * h;
      const uint4 v = *reinterpret_cast<const uint4*>(data + row * S::kDataBytes);
      words[h][0] = v.x;
      words[h][1] = v.y;
      words[h][2] = v.z;
      words[h][3] = v.w;
      if constexpr (kFormat == Fp4Format::kMxfp4) {
        multiplier[h][0] = fp4_multiplier_e8m0(scales[row * S::kScaleBytes]);
        multiplier[h][1] = multiplier[h][0];
      } else {
        const std::uint32_t pair =
            *reinterpret_cast<const std::uint16_t*>(scales + row * S::kScaleBytes);
        multiplier[h][0] = fp4_multiplier_e4m3(pair & 0xffu);
        multiplier[h][1] = fp4_multiplier_e4m3(pair >> 8);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t top[4];
      std::uint32_t bottom[4];
      decode_fp4(words[0][j], multiplier[0][j / 2], top);
      decode_fp4(words[1][j], multiplier[1][j / 2], bottom);
      const std::uint32_t a0[4] = {top[0], bottom[0], top[1], bottom[1]};
      const std::uint32_t a1[4] = {top[2], bottom[2], top[3], bottom[3]};
#pragma unroll
      for (int i = 0; i < kTokenTiles; ++i) {
        device::mma_bf16(sum[r][i], a0, x[i][j].x, x[i][j].y);
        device::mma_bf16(sum[r][i], a1, x[i][j].z, x[i][j].w);
      }
    }
  }
}

// Adds the partial sums of a unit's warps along k and stores the results.
template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
__device__ __forceinline__ void store_unit(
    const MoeArgs& args, const MoeWorkspace& w,
    const typename GroupedShape<kFormat, kGateUp, kTokenTiles>::Shared& shared, int number) {
  using S = GroupedShape<kFormat, kGateUp, kTokenTiles>;
  const int kept = number % S::kUnitsKept;
  const typename S::Unit unit = shared.units[kept];
  float unscale = 1.0f / kFp4Bias;
  if constexpr (kFormat == Fp4Format::kNvfp4) {
    unscale *=
        __ldg((kGateUp ? args.weights.gate_up_global : args.weights.down_global) + unit.expert);
  }
  for (int i = threadIdx.x; i < unit.tokens * S::kColumnsOut; i += S::kThreads) {
    const int token = i / S::kColumnsOut;
    const int column = i % S::kColumnsOut;
    float value = 0.0f;
    float up = 0.0f;
#pragma unroll
    for (int s = 0; s < S::kWarpsK; ++s) {
      const float* at = &shared.partial[number % 2][s][token][column];
      value += at[0];
      if constexpr (kGateUp) up += at[16];
    }
    const std::int64_t slot = shared.slots[kept][token];
    const int out_column = unit.row_block * S::kColumnsOut + column;
    if constexpr (kGateUp) {
      const float gate = fminf(value * unscale, args.swiglu_limit);
      up = fminf(fmaxf(up * unscale, -args.swiglu_limit), args.swiglu_limit);
      w.activation[slot * args.shape.width + out_column / 128 * 128 +
                   moe_position(out_column % 128)] =
          encode_bf16(gate / (1.0f + __expf(-gate)) * up);
    } else {
      w.slot_out[slot * args.shape.hidden + out_column] = value * unscale;
    }
  }
}

template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
__global__ void __launch_bounds__(256, kTokenTiles == 1 ? 3 : 2)
    moe_grouped_kernel(const MoeArgs args, const MoeWorkspace w, const GroupedPlan plan) {
  using S = GroupedShape<kFormat, kGateUp, kTokenTiles>;
  extern __shared__ __align__(128) std::uint8_t shared_bytes[];
  auto& shared = *reinterpret_cast<typename S::Shared*>(shared_bytes);
  // w13 needs the routing before it can know its weights. w2 knows them (the sort finished before
  // w13 began) and asks for them while w13 still runs.
  if constexpr (kGateUp) {
    device::wait_for_first_kernel();
    device::allow_dependent_launch();
  }
  ChunkFetcher<kFormat, kGateUp, kTokenTiles> fetcher(args, w, plan, shared);
#pragma unroll
  for (int s = 0; s < S::kSlots - 1; ++s) fetcher.next(s);
  if constexpr (!kGateUp) {
    device::wait_for_first_kernel();
    device::allow_dependent_launch();
  }

  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const int warp_k = warp % S::kWarpsK;
  const int row0 = 32 * (warp / S::kWarpsK) + g;  // g decides whether all of a lane's rows are odd
  LaneOffsets at{.data = row0 * S::kDataBytes + 16 * ((4 * warp_k + t) ^ (g & 1) << 2),
                 .scales = row0 * S::kScaleBytes + (4 * warp_k + t) * S::kLaneScaleBytes};
  // Opaque, so that they stay in registers and are not worked out again for each chunk.
  asm volatile("" : "+r"(at.data), "+r"(at.scales));
  const std::uint16_t* x_rows[kTokenTiles] = {};
  TokenPieces<kTokenTiles> x;
  float sum[S::kRowTiles][kTokenTiles][4] = {};
  int unit = 0;
  int chunk = 0;
  int slot = 0;
  for (int n = 0; n < fetcher.num_fetched; ++n) {
    wait_copies<S::kSlots - 2>();
    __syncthreads();  // The chunk is there, and the one before it has been read by all.
    if (chunk == 0) {
      if (unit > 0) store_unit<kFormat, kGateUp, kTokenTiles>(args, w, shared, unit - 1);
      const int kept = unit % S::kUnitsKept;
#pragma unroll
      for (int i = 0; i < kTokenTiles; ++i) {
        x_rows[i] = (kGateUp ? w.permuted_x : w.activation) +
                    static_cast<std::int64_t>(shared.x_rows[kept][8 * i + g]) *
                        (kGateUp ? args.shape.hidden : args.shape.width) +
                    128 * warp_k + 8 * t;
#pragma unroll
        for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
          for (int c = 0; c < 4; ++c) sum[r][i][c] = 0.0f;
        }
      }
      load_tokens<kTokenTiles>(x_rows, x);
    }
    fetcher.next(slot == 0 ? S::kSlots - 1 : slot - 1);
    multiply_chunk<kFormat, kGateUp, kTokenTiles>(shared, slot, at, x, sum);
    slot = slot + 1 == S::kSlots ? 0 : slot + 1;
    if (++chunk < plan.num_chunks) {
      // Asked for before the wait for weights, which hides them.
#pragma unroll
      for (int i = 0; i < kTokenTiles; ++i) x_rows[i] += S::kChunk;
      load_tokens<kTokenTiles>(x_rows, x);
      continue;
    }
    chunk = 0;
#pragma unroll
    for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
      for (int i = 0; i < kTokenTiles; ++i) {
        float* at = &shared.partial[unit % 2][warp_k][8 * i + 2 * t]
                                   [16 * (warp / S::kWarpsK * S::kRowTiles + r) + g];
        at[0] = sum[r][i][0];
        at[S::kPartialPitch] = sum[r][i][1];
        at[8] = sum[r][i][2];
        at[S::kPartialPitch + 8] = sum[r][i][3];
      }
    }
    ++unit;
  }
  if (unit == 0) return;
  __syncthreads();
  store_unit<kFormat, kGateUp, kTokenTiles>(args, w, shared, unit - 1);
}

template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
cudaError_t launch_grouped(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream) {
  using S = GroupedShape<kFormat, kGateUp, kTokenTiles>;
  const auto kernel = moe_grouped_kernel<kFormat, kGateUp, kTokenTiles>;
  constexpr int kBytes = static_cast<int>(sizeof(typename S::Shared));
  int device = 0;
  int num_sms = 0;
  int blocks_per_sm = 0;
  cudaError_t code =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (code == cudaSuccess) code = cudaGetDevice(&device);
  if (code == cudaSuccess) {
    code = cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device);
  }
  if (code == cudaSuccess) {
    code =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, kernel, S::kThreads, kBytes);
  }
  if (code != cudaSuccess) return code;
  const int columns = kGateUp ? args.shape.width : args.shape.hidden;
  const int max_runs = std::min(args.shape.experts, args.shape.tokens * args.shape.top_k);
  const int blocks = std::min(columns / S::kColumnsOut * max_runs, num_sms * blocks_per_sm);
  const int k = kGateUp ? args.shape.hidden : args.shape.width;
  GroupedPlan plan{.row_blocks = columns / S::kColumnsOut,
                   .num_chunks = k / S::kChunk,
                   .rows_per_expert = kGateUp ? 2 * columns : columns,
                   .row_bytes = k / 2,
                   .scale_row_bytes = k / S::kGroup};
  plan.step_runs = blocks / plan.row_blocks;
  plan.step_row_blocks = blocks % plan.row_blocks;
  static_assert(S::kPasses == 4);
  for (int p = 0; p < S::kPasses; ++p) {
    plan.pass_bytes[p] = static_cast<unsigned>(
        S::matrix_row(p * S::kRowsPerPass, args.shape.width) * plan.row_bytes);
  }
  return launch_dependent(kernel, dim3(static_cast<unsigned>(blocks)), dim3(S::kThreads), kBytes,
                          stream, args, w, plan);
}

template <Fp4Format kFormat>
cudaError_t launch_grouped_both(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream) {
  // Two token tiles once experts have more than four tokens on average: then few experts need a
  // second look at their weights.
  const bool few = args.shape.tokens * args.shape.top_k <= 4 * args.shape.experts;
  const cudaError_t code = few ? launch_grouped<kFormat, true, 1>(args, w, stream)
                               : launch_grouped<kFormat, true, 2>(args, w, stream);
  if (code != cudaSuccess) return code;
  return few ? launch_grouped<kFormat, false, 1>(args, w, stream)
             : launch_grouped<kFormat, false, 2>(args, w, stream);
}

}  // namespace fulcrum::kernels
