// Grouped expert GEMMs: a block per (row block, used expert). Weights and scales stream through
// shared memory with everything that fits in flight, are decoded to BF16 in registers and
// multiplied with the expert's tokens, which come from L1/L2 straight into fragments (there are
// few: 8 * kTokenTiles at a time).
#pragma once

#include <algorithm>

#include "kernels/common/async_copy.cuh"
#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/mma.cuh"
#include "kernels/moe/moe_fp4.cuh"
#include "kernels/moe/moe_layout.cuh"
#include "kernels/moe/moe_parts.h"

namespace fulcrum::kernels {

// kGateUp: two row tiles per warp, gate and up of the same 16 columns. kWarpsK of eight warps share
// rows along k.
template <Fp4Format kFormat, bool kGateUp, int kWarpsK, int kSlots, int kTokenTiles>
struct GroupedShape {
  static constexpr int kThreads = 256;
  static constexpr int kWarpsN = 8 / kWarpsK;
  static constexpr int kRowTiles = kGateUp ? 2 : 1;
  static constexpr int kRows = 16 * kRowTiles * kWarpsN;  // Weight rows in shared memory.
  static constexpr int kColumnsOut = 16 * kWarpsN;        // Result columns of a block.
  static constexpr int kChunk = 128 * kWarpsK;            // Columns of k: one step of every warp.
  static constexpr int kDataBytes = kChunk / 2;
  static constexpr int kScaleBytes = kChunk / fp4_group(kFormat);
  static constexpr int kPitch = kDataBytes + 64;  // Conflict-free; the padding holds the scales.
  static_assert(kScaleBytes <= 64);
  static constexpr int kTokens = 8 * kTokenTiles;
  static constexpr int kPartialPitch = kRows + 4;
  static constexpr int kSharedBytes =
      std::max(kSlots * kRows * kPitch, 4 * kWarpsK * kTokens * kPartialPitch);
};

template <Fp4Format kFormat, bool kGateUp, int kWarpsK, int kSlots, int kTokenTiles>
__global__ void __launch_bounds__(256, kTokenTiles == 1 ? 3 : 2)
    moe_grouped_kernel(const MoeArgs args, const MoeWorkspace w) {
  using S = GroupedShape<kFormat, kGateUp, kWarpsK, kSlots, kTokenTiles>;
  extern __shared__ __align__(128) std::uint8_t shared[];
  // w13 needs the routing before it can know its weights. w2 knows them (the sort finished before
  // w13 began) and asks for them while w13 still runs.
  if constexpr (kGateUp) {
    device::wait_for_first_kernel();
    device::allow_dependent_launch();
  }
  if (static_cast<int>(blockIdx.y) >= *w.num_active) return;
  const int expert = w.active_expert[blockIdx.y];
  const int first_slot = w.expert_offset[expert];
  const int end_slot = w.expert_offset[expert + 1];

  const int k = kGateUp ? args.shape.hidden : args.shape.width;
  const int rows_per_expert = kGateUp ? 2 * args.shape.width : args.shape.hidden;
  const std::uint8_t* codes = (kGateUp ? args.weights.gate_up : args.weights.down) +
                              static_cast<std::int64_t>(expert) * rows_per_expert * (k / 2);
  const std::uint8_t* scales =
      (kGateUp ? args.weights.gate_up_scale : args.weights.down_scale) +
      static_cast<std::int64_t>(expert) * rows_per_expert * (k / fp4_group(kFormat));
  float unscale = 1.0f / kFp4Bias;
  if constexpr (kFormat == Fp4Format::kNvfp4) {
    unscale *= __ldg((kGateUp ? args.weights.gate_up_global : args.weights.down_global) + expert);
  }

  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const int warp_k = warp % kWarpsK;
  const int warp_n = warp / kWarpsK;
  const int column0 = blockIdx.x * S::kColumnsOut;
  const int num_chunks = k / S::kChunk;

  // A pass of the copy takes whole rows. kRowsPerPass divides 16, so the tile of a pass is known at
  // compile time and only one address per thread has to be computed.
  constexpr int kLanes = S::kDataBytes / 16;
  constexpr int kRowsPerPass = S::kThreads / kLanes;
  static_assert(kRowsPerPass % 16 == 0 || 16 % kRowsPerPass == 0);
  const int copy_row = threadIdx.x / kLanes;
  const std::int64_t row_bytes = k / 2;
  const std::int64_t scale_row_bytes = k / fp4_group(kFormat);
  // Row of the matrix behind row r of shared memory: the tiles of a warp follow each other.
  const auto matrix_row = [&](int r) {
    return r / 16 % S::kRowTiles * args.shape.width + column0 + 16 * (r / (16 * S::kRowTiles)) +
           r % 16;
  };
  const std::uint8_t* row_source[S::kRows / kRowsPerPass];
#pragma unroll
  for (int p = 0; p < S::kRows / kRowsPerPass; ++p) {
    row_source[p] =
        codes + matrix_row(p * kRowsPerPass + copy_row) * row_bytes + 16 * (threadIdx.x % kLanes);
  }
  std::uint8_t* const row_target = shared + copy_row * S::kPitch + 16 * (threadIdx.x % kLanes);
  constexpr int kUnit = std::min(16, S::kScaleBytes);
  constexpr int kUnits = S::kScaleBytes / kUnit;
  static_assert(S::kRows * kUnits <= S::kThreads);
  const bool copies_scale = static_cast<int>(threadIdx.x) < S::kRows * kUnits;
  const int scale_row = threadIdx.x / kUnits;
  const std::uint8_t* const scale_source =
      scales + (copies_scale ? matrix_row(scale_row) : 0) * scale_row_bytes +
      kUnit * (threadIdx.x % kUnits);
  std::uint8_t* const scale_target =
      shared + scale_row * S::kPitch + S::kDataBytes + kUnit * (threadIdx.x % kUnits);
  const auto fetch = [&](int chunk) {
    const int slot = chunk % kSlots * S::kRows * S::kPitch;
#pragma unroll
    for (int p = 0; p < S::kRows / kRowsPerPass; ++p) {
      copy_async<16>(row_target + slot + p * kRowsPerPass * S::kPitch,
                     row_source[p] + chunk * S::kDataBytes, true);
    }
    if (copies_scale) {
      copy_async<kUnit>(scale_target + slot, scale_source + chunk * S::kScaleBytes, true);
    }
  };

  for (int base = first_slot; base < end_slot; base += S::kTokens) {
#pragma unroll
    for (int c = 0; c < kSlots; ++c) {
      if (c < num_chunks) fetch(c);
      commit_copies();
    }
    if constexpr (!kGateUp) {
      if (base == first_slot) {
        device::wait_for_first_kernel();
        device::allow_dependent_launch();
      }
    }
    const std::uint16_t* x_rows[kTokenTiles];
#pragma unroll
    for (int i = 0; i < kTokenTiles; ++i) {
      const int index = base + 8 * i + g;
      x_rows[i] = nullptr;
      if (index < end_slot) {
        const int slot = w.sorted_slot[index];
        x_rows[i] = kGateUp ? w.permuted_x + static_cast<std::int64_t>(slot / args.shape.top_k) * k
                            : w.activation + static_cast<std::int64_t>(slot) * k;
        x_rows[i] += 128 * warp_k + 8 * t;
      }
    }

    float sum[S::kRowTiles][kTokenTiles][4] = {};
    for (int chunk = 0; chunk < num_chunks; ++chunk) {
      uint4 x[kTokenTiles][4];
#pragma unroll
      for (int i = 0; i < kTokenTiles; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          x[i][j] = x_rows[i] != nullptr ? load_cached(x_rows[i] + chunk * S::kChunk + 32 * j)
                                         : make_uint4(0, 0, 0, 0);
        }
      }
      wait_copies<kSlots - 1>();
      __syncthreads();
      const std::uint8_t* slot = shared + chunk % kSlots * S::kRows * S::kPitch;
#pragma unroll
      for (int r = 0; r < S::kRowTiles; ++r) {
        const int row = 16 * (warp_n * S::kRowTiles + r) + g;
        std::uint32_t words[2][4];
        std::uint32_t multiplier[2][2];  // Of words 0-1 and 2-3.
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const std::uint8_t* at = slot + (row + 8 * h) * S::kPitch;
          const uint4 v = *reinterpret_cast<const uint4*>(at + 64 * warp_k + 16 * t);
          words[h][0] = v.x;
          words[h][1] = v.y;
          words[h][2] = v.z;
          words[h][3] = v.w;
          if constexpr (kFormat == Fp4Format::kMxfp4) {
            multiplier[h][0] = fp4_multiplier_e8m0(at[S::kDataBytes + 4 * warp_k + t]);
            multiplier[h][1] = multiplier[h][0];
          } else {
            const std::uint32_t pair =
                *reinterpret_cast<const std::uint16_t*>(at + S::kDataBytes + 8 * warp_k + 2 * t);
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
#pragma unroll
          for (int i = 0; i < kTokenTiles; ++i) {
            mma_bf16(sum[r][i], top[0], bottom[0], top[1], bottom[1], x[i][j].x, x[i][j].y);
            mma_bf16(sum[r][i], top[2], bottom[2], top[3], bottom[3], x[i][j].z, x[i][j].w);
          }
        }
      }
      if (chunk + kSlots < num_chunks) {
        __syncthreads();
        fetch(chunk + kSlots);
      }
      commit_copies();
    }

    wait_copies<0>();
    __syncthreads();
    float* partial = reinterpret_cast<float*>(shared);
#pragma unroll
    for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
      for (int i = 0; i < kTokenTiles; ++i) {
        float* at = partial + (warp_k * S::kTokens + 8 * i + 2 * t) * S::kPartialPitch +
                    16 * (warp_n * S::kRowTiles + r) + g;
        at[0] = sum[r][i][0];
        at[S::kPartialPitch] = sum[r][i][1];
        at[8] = sum[r][i][2];
        at[S::kPartialPitch + 8] = sum[r][i][3];
      }
    }
    __syncthreads();
    const int tokens = min(S::kTokens, end_slot - base);
    for (int i = threadIdx.x; i < tokens * S::kColumnsOut; i += S::kThreads) {
      const int token = i / S::kColumnsOut;
      const int column = i % S::kColumnsOut;
      const float* at =
          partial + token * S::kPartialPitch + column / 16 * 16 * S::kRowTiles + column % 16;
      float value[S::kRowTiles] = {};
#pragma unroll
      for (int s = 0; s < kWarpsK; ++s) {
#pragma unroll
        for (int r = 0; r < S::kRowTiles; ++r) {
          value[r] += at[s * S::kTokens * S::kPartialPitch + 16 * r];
        }
      }
      const std::int64_t slot = w.sorted_slot[base + token];
      if constexpr (kGateUp) {
        const float gate = fminf(value[0] * unscale, args.swiglu_limit);
        const float up = fminf(fmaxf(value[1] * unscale, -args.swiglu_limit), args.swiglu_limit);
        const int out_column = column0 + column;
        w.activation[slot * args.shape.width + out_column / 128 * 128 +
                     moe_position(out_column % 128)] =
            encode_bf16(gate / (1.0f + __expf(-gate)) * up);
      } else {
        w.slot_out[slot * args.shape.hidden + column0 + column] = value[0] * unscale;
      }
    }
    __syncthreads();  // The partial sums make room for the next tokens' weights.
  }
}

template <Fp4Format kFormat, bool kGateUp, int kWarpsK, int kSlots, int kTokenTiles>
cudaError_t launch_grouped(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream) {
  using S = GroupedShape<kFormat, kGateUp, kWarpsK, kSlots, kTokenTiles>;
  const auto kernel = moe_grouped_kernel<kFormat, kGateUp, kWarpsK, kSlots, kTokenTiles>;
  if (const cudaError_t code = cudaFuncSetAttribute(
          kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes);
      code != cudaSuccess) {
    return code;
  }
  const int columns = kGateUp ? args.shape.width : args.shape.hidden;
  const int max_active = std::min(args.shape.experts, args.shape.tokens * args.shape.top_k);
  const dim3 grid(static_cast<unsigned>(columns / S::kColumnsOut),
                  static_cast<unsigned>(max_active));
  return launch_dependent(kernel, grid, dim3(S::kThreads), S::kSharedBytes, stream, args, w);
}

template <Fp4Format kFormat>
cudaError_t launch_grouped_both(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream) {
  // Four token tiles once experts have more than four tokens on average: then weights are decoded
  // less often.
  const bool few = args.shape.tokens * args.shape.top_k <= 4 * args.shape.experts;
  cudaError_t code = few ? launch_grouped<kFormat, true, 8, 4, 1>(args, w, stream)
                         : launch_grouped<kFormat, true, 8, 4, 4>(args, w, stream);
  if (code != cudaSuccess) return code;
  return few ? launch_grouped<kFormat, false, 2, 4, 1>(args, w, stream)
             : launch_grouped<kFormat, false, 2, 4, 4>(args, w, stream);
}

}  // namespace fulcrum::kernels
