// Grouped expert GEMMs. The work of a launch is a list of units (used expert, row block, up to
// kTokens of its tokens), and the resident blocks deal it out among themselves. A block sees its
// units as one stream of equal chunks of weights: a ring of shared-memory slots is always being
// filled, across unit boundaries too, so neither the search for the next expert nor a unit's sums
// leave memory idle. Weights are decoded to BF16 in registers and multiplied with the expert's
// tokens, which come from L1/L2 straight into fragments (there are few: 8 * kTokenTiles at a time).
//
// What bounds it: decoding. A chunk of 16 KiB is 4096 words of eight codes at 17 instructions,
// about 330 instructions a warp with products, loads and copies; one SM of an H200 issues those of
// its eight warps in 660 cycles and receives the chunk in 930.
#pragma once

#include <algorithm>

#include "kernels/common/async_copy.cuh"
#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/mma.cuh"
#include "kernels/moe/moe_fp4.cuh"
#include "kernels/moe/moe_layout.cuh"
#include "kernels/moe/moe_parts.h"

namespace fulcrum::kernels {

// Two row tiles of 16 per warp. w13: gate and up of the same 16 columns, k shared out among eight
// warps. w2: four pairs of warps, each pair 32 rows.
template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
struct GroupedShape {
  static constexpr int kThreads = 256;
  static constexpr int kWarpsK = kGateUp ? 8 : 2;
  static constexpr int kRowTiles = 2;
  static constexpr int kRows = 16 * kRowTiles * (8 / kWarpsK);     // weight rows of a block
  static constexpr int kColumnsOut = kGateUp ? kRows / 2 : kRows;  // result columns of a block
  static constexpr int kChunk = 128 * kWarpsK;                     // columns of k: one step
  static constexpr int kDataBytes = kChunk / 2;
  static constexpr int kGroup = fp4_group(kFormat);
  static constexpr int kScaleBytes = kChunk / kGroup;
  static constexpr int kSlots = 3;
  static constexpr int kTokens = 8 * kTokenTiles;
  static constexpr int kPartialPitch = kRows + 4;
  // Units begun but not stored: kSlots ahead of the one being multiplied, and the one before it.
  static constexpr int kUnitsKept = 8;
  static_assert(kSlots + 2 <= kUnitsKept);

  struct Unit {
    std::int32_t expert;
    std::int32_t row_block;
    std::int32_t tokens;  // in use, 1 .. kTokens
  };
  struct Shared {
    // 16-byte pieces of odd rows are swapped with those 64 bytes away: two rows of a fragment load
    // then lie in different banks.
    alignas(128) std::uint8_t data[kSlots][kRows * kDataBytes];
    alignas(16) std::uint8_t scales[kSlots][kRows * kScaleBytes];
    float partial[2][kWarpsK][kTokens][kPartialPitch];
    std::int32_t slots[kUnitsKept][kTokens];
    Unit units[kUnitsKept];
  };
};

// Copies the block's stream of chunks, one per call of next().
template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
struct ChunkFetcher {
  using S = GroupedShape<kFormat, kGateUp, kTokenTiles>;
  // A pass of the copy takes whole rows.
  static constexpr int kLanes = S::kDataBytes / 16;
  static constexpr int kRowsPerPass = S::kThreads / kLanes;
  static constexpr int kPasses = S::kRows / kRowsPerPass;
  static constexpr int kUnit = std::min(16, S::kScaleBytes);
  static constexpr int kUnits = S::kScaleBytes / kUnit;
  static_assert(S::kRows * kUnits <= S::kThreads && kRowsPerPass % 2 == 0);

  const MoeArgs& args;
  const MoeWorkspace& w;
  typename S::Shared& shared;
  int num_runs;
  int row_blocks;  // of an expert
  int num_chunks;  // of a unit
  int row_bytes;
  int scale_row_bytes;
  int run;  // index of the next unit's run; num_runs or more: there is none
  int row_block;
  MoeRun next_run;  // already loaded: the stream never waits for it
  MoeRun current{};
  int current_row_block = 0;
  int base = 0;   // first sorted slot of the unit being copied
  int chunk = 0;  // of that unit; 0: the unit has not begun
  int num_units = 0;
  int num_fetched = 0;
  const std::uint8_t* source = nullptr;
  const std::uint8_t* scale_source = nullptr;

  __device__ __forceinline__ ChunkFetcher(const MoeArgs& arguments, const MoeWorkspace& workspace,
                                          typename S::Shared& memory)
      : args(arguments), w(workspace), shared(memory), num_runs(*workspace.num_runs) {
    const int k = kGateUp ? args.shape.hidden : args.shape.width;
    row_blocks = (kGateUp ? args.shape.width : args.shape.hidden) / S::kColumnsOut;
    num_chunks = k / S::kChunk;
    row_bytes = k / 2;
    scale_row_bytes = k / S::kGroup;
    run = static_cast<int>(blockIdx.x) / row_blocks;
    row_block = static_cast<int>(blockIdx.x) % row_blocks;
    load_run();
  }

  __device__ __forceinline__ void load_run() {
    if (run < num_runs) next_run = w.runs[run];
  }

  __device__ __forceinline__ bool done() const {
    return chunk == 0 && base >= current.end && run >= num_runs;
  }

  // Row of the matrix behind row r of shared memory, relative to the block's first.
  __device__ __forceinline__ int matrix_row(int r) const {
    return kGateUp ? r / 16 * args.shape.width + r % 16 : r;
  }

  __device__ __forceinline__ void begin_unit() {
    const int thread = static_cast<int>(threadIdx.x);
    if (base >= current.end) {
      current = next_run;
      current_row_block = row_block;
      base = current.begin;
      run += static_cast<int>(gridDim.x) / row_blocks;
      row_block += static_cast<int>(gridDim.x) % row_blocks;
      if (row_block >= row_blocks) {
        row_block -= row_blocks;
        ++run;
      }
      load_run();
    }
    const std::int64_t first_row = static_cast<std::int64_t>(current.expert) *
                                       (kGateUp ? 2 * args.shape.width : args.shape.hidden) +
                                   current_row_block * S::kColumnsOut;
    source = (kGateUp ? args.weights.gate_up : args.weights.down) +
             (first_row + matrix_row(thread / kLanes)) * row_bytes + 16 * (thread % kLanes);
    const int scale_row = thread / kUnits < S::kRows ? matrix_row(thread / kUnits) : 0;
    scale_source = (kGateUp ? args.weights.gate_up_scale : args.weights.down_scale) +
                   (first_row + scale_row) * scale_row_bytes + kUnit * (thread % kUnits);
    const int kept = num_units % S::kUnitsKept;
    if (thread == 0) {
      shared.units[kept] = {.expert = current.expert,
                            .row_block = current_row_block,
                            .tokens = min(S::kTokens, current.end - base)};
    }
    if (thread < S::kTokens) {
      const bool valid = base + thread < current.end;
      copy_async<4>(&shared.slots[kept][thread], w.sorted_slot + (valid ? base + thread : 0),
                    valid);
    }
    ++num_units;
    base += S::kTokens;
  }

  // Starts the copy of the next chunk into `slot`, if there is one, and commits.
  __device__ __forceinline__ void next(int slot) {
    if (!done()) {
      if (chunk == 0) begin_unit();
      const int thread = static_cast<int>(threadIdx.x);
      const int row = thread / kLanes;
      // kRowsPerPass is even: a thread's rows are all odd or all even.
      std::uint8_t* target =
          shared.data[slot] + row * S::kDataBytes + 16 * (thread % kLanes ^ (row & 1) << 2);
#pragma unroll
      for (int p = 0; p < kPasses; ++p) {
        const int offset = kRowsPerPass <= 16 ? matrix_row(p * kRowsPerPass) : p * kRowsPerPass;
        copy_async<16>(target + p * kRowsPerPass * S::kDataBytes, source + offset * row_bytes,
                       true);
      }
      if (thread < S::kRows * kUnits) {
        copy_async<kUnit>(shared.scales[slot] + kUnit * thread, scale_source, true);
      }
      source += S::kDataBytes;
      scale_source += S::kScaleBytes;
      chunk = chunk + 1 == num_chunks ? 0 : chunk + 1;
      ++num_fetched;
    }
    commit_copies();
  }
};

// Fragments of one chunk: products of the warp's two row tiles with its tokens.
template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
__device__ __forceinline__ void multiply_chunk(
    const typename GroupedShape<kFormat, kGateUp, kTokenTiles>::Shared& shared, int slot,
    const std::uint16_t* const (&x_rows)[kTokenTiles], int depth, float (&sum)[2][kTokenTiles][4]) {
  using S = GroupedShape<kFormat, kGateUp, kTokenTiles>;
  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const int warp_k = warp % S::kWarpsK;
  uint4 x[kTokenTiles][4];
#pragma unroll
  for (int i = 0; i < kTokenTiles; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      x[i][j] =
          x_rows[i] != nullptr ? load_cached(x_rows[i] + depth + 32 * j) : make_uint4(0, 0, 0, 0);
    }
  }
  const int row0 = 32 * (warp / S::kWarpsK) + g;  // g decides whether all of a lane's rows are odd
  const std::uint8_t* data =
      shared.data[slot] + row0 * S::kDataBytes + 16 * ((4 * warp_k + t) ^ (g & 1) << 2);
  const std::uint8_t* scales =
      shared.scales[slot] + row0 * S::kScaleBytes + S::kScaleBytes / S::kWarpsK * warp_k;
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
        multiplier[h][0] = fp4_multiplier_e8m0(scales[row * S::kScaleBytes + t]);
        multiplier[h][1] = multiplier[h][0];
      } else {
        const std::uint32_t pair =
            *reinterpret_cast<const std::uint16_t*>(scales + row * S::kScaleBytes + 2 * t);
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
    moe_grouped_kernel(const MoeArgs args, const MoeWorkspace w) {
  using S = GroupedShape<kFormat, kGateUp, kTokenTiles>;
  extern __shared__ __align__(128) std::uint8_t shared_bytes[];
  auto& shared = *reinterpret_cast<typename S::Shared*>(shared_bytes);
  // w13 needs the routing before it can know its weights. w2 knows them (the sort finished before
  // w13 began) and asks for them while w13 still runs.
  if constexpr (kGateUp) {
    device::wait_for_first_kernel();
    device::allow_dependent_launch();
  }
  ChunkFetcher<kFormat, kGateUp, kTokenTiles> fetcher(args, w, shared);
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
  const std::uint16_t* x_rows[kTokenTiles] = {};
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
        const int token_slot = shared.slots[kept][8 * i + g];
        x_rows[i] = nullptr;
        if (8 * i + g < shared.units[kept].tokens) {
          x_rows[i] =
              (kGateUp ? w.permuted_x + static_cast<std::int64_t>(token_slot / args.shape.top_k) *
                                            args.shape.hidden
                       : w.activation + static_cast<std::int64_t>(token_slot) * args.shape.width) +
              128 * warp_k + 8 * t;
        }
#pragma unroll
        for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
          for (int c = 0; c < 4; ++c) sum[r][i][c] = 0.0f;
        }
      }
    }
    fetcher.next(slot == 0 ? S::kSlots - 1 : slot - 1);
    multiply_chunk<kFormat, kGateUp, kTokenTiles>(shared, slot, x_rows, chunk * S::kChunk, sum);
    slot = slot + 1 == S::kSlots ? 0 : slot + 1;
    if (++chunk < fetcher.num_chunks) continue;
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
  return launch_dependent(kernel, dim3(static_cast<unsigned>(blocks)), dim3(S::kThreads), kBytes,
                          stream, args, w);
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
