// Sparse MLA decode on tensor cores. A block owns 16 x kHeadTiles heads of one token and a range of its rows;
// the heads share every gathered row. Per tile of 32 rows:
//   gather     584-byte rows by cp.async, two tiles ahead; a warp copies and dequantises its own four rows,
//              so the gather needs no block-wide barrier
//   dequantise E4M3 x UE8M0 -> BF16, exact (4 significant bits times a power of two)
//   scores     heads x 32, m16n8k16 BF16, 512 deep
//   softmax    online, in base 2, FP32
//   values     heads x 512 accumulators in registers, each warp 64 of the 512 columns
// Partial results of the splits are merged by sparse_mla_combine.
#pragma once

#include <cuda_bf16.h>

#include "kernels/attention/sparse_mla_launch.h"
#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/formats.h"
#include "kernels/common/tensor_core.cuh"

namespace fulcrum::kernels::detail {

inline constexpr int kSplitKThreads = 256;
inline constexpr int kSplitKWarps = kSplitKThreads / 32;
inline constexpr int kSplitKTileRows = 32;
inline constexpr int kSplitKStages = 2;
// Row strides that put the eight rows of an ldmatrix in different banks: odd multiples of 16 bytes.
inline constexpr int kSplitKRowStride = kKvHeadDim + 8;         // BF16 elements
inline constexpr int kSplitKWeightStride = kSplitKTileRows + 8; // BF16 elements
inline constexpr int kSplitKScoreStride = kSplitKTileRows + 4;  // floats
inline constexpr int kSplitKRawStride = kKvRowBytes + 8;        // bytes; the last 8 hold the row's validity

template <int kHeadTiles>
struct SplitKShared {
  static constexpr int kHeads = 16 * kHeadTiles;
  alignas(16) std::uint16_t query[kHeads][kSplitKRowStride];
  alignas(16) std::uint16_t rows[kSplitKTileRows][kSplitKRowStride];
  alignas(16) std::uint8_t raw[kSplitKStages][kSplitKTileRows][kSplitKRawStride];
  alignas(16) float scores[kHeads][kSplitKScoreStride];
  alignas(16) std::uint16_t weights[kHeads][kSplitKWeightStride];
  float rescale[kHeads];
  float denominator[kHeads];
};

// Four E4M3 codes -> two BF16 pairs, without their scale and 2^-120 too small: the code's exponent and
// mantissa bits land in BF16's lowest exponent and highest mantissa bits, subnormals included.
__device__ __forceinline__ uint2 spread_e4m3(std::uint32_t codes) {
  const std::uint32_t low = __byte_perm(codes, 0, 0x1404);   // codes 0 and 1 in the high bytes of the halves
  const std::uint32_t high = __byte_perm(codes, 0, 0x3424);  // codes 2 and 3
  return make_uint2((low & 0x80008000U) | ((low >> 4) & 0x07f007f0U),
                    (high & 0x80008000U) | ((high >> 4) & 0x07f007f0U));
}

__device__ __forceinline__ std::uint32_t scale_bf16x2(std::uint32_t pair, __nv_bfloat162 rebias,
                                                      __nv_bfloat162 scale) {
  __nv_bfloat162 value;
  static_assert(sizeof(value) == sizeof(pair));
  memcpy(&value, &pair, sizeof(pair));
  // Two exact steps: 2^120 and the group's scale; their product alone could leave BF16's range.
  value = __hmul2(__hmul2(value, rebias), scale);
  memcpy(&pair, &value, sizeof(pair));
  return pair;
}

struct SplitKRows {
  const std::int32_t* window_rows;
  const std::int32_t* compressed_rows;
  int window_count;
  int total;
};

// The rows that a warp gathers of one tile: lane j < 4 holds the number of the warp's j-th row, negative for none.
// Loaded a tile before they are needed, because a gather that waited for them would hold up the arithmetic.
inline constexpr int kSplitKRowsPerWarp = kSplitKTileRows / kSplitKWarps;

__device__ __forceinline__ std::int32_t load_row_number(const SplitKRows& slots, int first, int end,
                                                        int warp, int lane) {
  const int slot = first + warp * kSplitKRowsPerWarp + lane;
  if (lane >= kSplitKRowsPerWarp || slot >= end) return -1;
  return slot < slots.window_count ? slots.window_rows[slot]
                                   : slots.compressed_rows[slot - slots.window_count];
}

template <int kHeadTiles>
__device__ __forceinline__ void gather_tile(SplitKShared<kHeadTiles>& shared, int stage, int first,
                                            std::int32_t row_number, const SplitKRows& slots,
                                            const KvPool& window, const KvPool& compressed, int warp,
                                            int lane) {
#pragma unroll
  for (int j = 0; j < kSplitKRowsPerWarp; ++j) {
    const int r = warp * kSplitKRowsPerWarp + j;
    const std::int32_t row = __shfl_sync(0xffffffffU, row_number, j);
    const bool valid = row >= 0;
    const KvPool& pool = first + r < slots.window_count ? window : compressed;
    const std::uint8_t* data = pool.pages + kv_data_offset(pool, valid ? row : 0);
    const std::uint8_t* scales = pool.pages + kv_scale_offset(pool, valid ? row : 0);
    std::uint8_t* raw = shared.raw[stage][r];
    const std::uint32_t target = device::shared_address(raw);
    device::copy_async_16(target + 16 * lane, data + 16 * lane, valid);
    if (lane < 4) {
      device::copy_async_16(target + 512 + 16 * lane, data + 512 + 16 * lane, valid);
    } else if (lane == 4) {
      device::copy_async_8(target + kKvDataBytes, scales, valid);
      *reinterpret_cast<int*>(raw + kKvRowBytes) = valid ? 1 : 0;
    }
  }
}

template <int kHeadTiles>
__device__ __forceinline__ void dequantise_tile(SplitKShared<kHeadTiles>& shared, int stage, int warp,
                                                int lane) {
  constexpr int kFp8Chunks = kKvFp8Values / 16;  // 28 lanes convert, 4 lanes copy the rotary part
  const __nv_bfloat162 rebias = __float2bfloat162_rn(0x1p120F);
#pragma unroll
  for (int j = 0; j < kSplitKRowsPerWarp; ++j) {
    const int r = warp * kSplitKRowsPerWarp + j;
    const std::uint8_t* raw = shared.raw[stage][r];
    uint4* out = reinterpret_cast<uint4*>(shared.rows[r]);
    if (lane < kFp8Chunks) {
      const uint4 codes = *reinterpret_cast<const uint4*>(raw + 16 * lane);
      const float scale_value = decode_e8m0(raw[kKvDataBytes + 16 * lane / kKvScaleGroup]);
      const __nv_bfloat162 scale = __float2bfloat162_rn(scale_value);
      const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
      std::uint32_t pairs[8];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint2 spread = spread_e4m3(words[i]);
        pairs[2 * i] = scale_bf16x2(spread.x, rebias, scale);
        pairs[2 * i + 1] = scale_bf16x2(spread.y, rebias, scale);
      }
      out[2 * lane] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
      out[2 * lane + 1] = make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
    } else {
      const uint4* rope = reinterpret_cast<const uint4*>(raw + kKvFp8Values);
      const int chunk = 2 * (lane - kFp8Chunks);
      out[kKvFp8Values / 8 + chunk] = rope[chunk];
      out[kKvFp8Values / 8 + chunk + 1] = rope[chunk + 1];
    }
  }
}

// scores[head][row] of one tile. Warps share the head tiles x 4 row groups of 8; two accumulator sets
// halve the chain of dependent instructions.
template <int kHeadTiles>
__device__ __forceinline__ void score_tile(SplitKShared<kHeadTiles>& shared, float scale_log2, int warp,
                                           int lane) {
  constexpr int kGroups = kHeadTiles == 4 ? 2 : 1;  // row groups of 8 per warp
  if (kHeadTiles == 1 && warp >= 4) return;
  const int head0 = 16 * (warp % kHeadTiles);
  const int row0 = 8 * kGroups * (warp / kHeadTiles);
  float c[2][kGroups][4] = {};
  const std::uint32_t a_address =
      device::shared_address(&shared.query[head0 + lane % 16][8 * (lane / 16)]);
  // kGroups == 2: matrices (rows 0-7, k 0-7), (0-7, 8-15), (8-15, 0-7), (8-15, 8-15) of a 16-deep step;
  // kGroups == 1: four 8-deep matrices of the same rows, enough for two 16-deep steps.
  const int matrix = lane / 8;
  const std::uint32_t b_address =
      kGroups == 2
          ? device::shared_address(&shared.rows[row0 + 8 * (matrix / 2) + lane % 8][8 * (matrix % 2)])
          : device::shared_address(&shared.rows[row0 + lane % 8][8 * matrix]);
#pragma unroll 4
  for (int k = 0; k < kKvHeadDim; k += 32) {
    std::uint32_t a0[4];
    std::uint32_t a1[4];
    std::uint32_t b0[4];
    device::load_matrix_x4(a0, a_address + 2 * k);
    device::load_matrix_x4(a1, a_address + 2 * (k + 16));
    device::load_matrix_x4(b0, b_address + 2 * k);
    if constexpr (kGroups == 2) {
      std::uint32_t b1[4];
      device::load_matrix_x4(b1, b_address + 2 * (k + 16));
      device::mma_bf16(c[0][0], a0, b0[0], b0[1]);
      device::mma_bf16(c[0][1], a0, b0[2], b0[3]);
      device::mma_bf16(c[1][0], a1, b1[0], b1[1]);
      device::mma_bf16(c[1][1], a1, b1[2], b1[3]);
    } else {
      device::mma_bf16(c[0][0], a0, b0[0], b0[1]);
      device::mma_bf16(c[1][0], a1, b0[2], b0[3]);
    }
  }
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int head = head0 + lane / 4;
    const int row = row0 + 8 * g + 2 * (lane % 4);
    shared.scores[head][row] = (c[0][g][0] + c[1][g][0]) * scale_log2;
    shared.scores[head][row + 1] = (c[0][g][1] + c[1][g][1]) * scale_log2;
    shared.scores[head + 8][row] = (c[0][g][2] + c[1][g][2]) * scale_log2;
    shared.scores[head + 8][row + 1] = (c[0][g][3] + c[1][g][3]) * scale_log2;
  }
}

// Running softmax of one head, held by the kSplitKThreads / heads threads that share the head. `sum` is this
// thread's share of the denominator.
struct RunningSoftmax {
  float largest = -INFINITY;
  float sum = 0.0F;
};

template <int kHeadTiles>
__device__ __forceinline__ void softmax_tile(SplitKShared<kHeadTiles>& shared, int stage, int thread,
                                             RunningSoftmax& state) {
  constexpr int kLanes = kSplitKThreads / (16 * kHeadTiles);  // threads per head
  constexpr int kColumns = kSplitKTileRows / kLanes;
  const int head = thread / kLanes;
  const int column0 = (thread % kLanes) * kColumns;
  float score[kColumns];
  float largest = state.largest;
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const int valid = *reinterpret_cast<const int*>(shared.raw[stage][column0 + i] + kKvRowBytes);
    score[i] = valid != 0 ? shared.scores[head][column0 + i] : -INFINITY;
    largest = fmaxf(largest, score[i]);
  }
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset >>= 1) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, offset));
  }
  const float base = largest == -INFINITY ? 0.0F : largest;  // exp2(-inf - -inf) would be NaN
  const float rescale = exp2f(state.largest - base);
  state.largest = largest;
  state.sum *= rescale;
#pragma unroll
  for (int i = 0; i < kColumns; i += 2) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(exp2f(score[i] - base), exp2f(score[i + 1] - base));
    // The denominator sums the rounded weights, so that the weights that are used add up to one.
    state.sum += __low2float(pair) + __high2float(pair);
    *reinterpret_cast<__nv_bfloat162*>(&shared.weights[head][column0 + i]) = pair;
  }
  if (thread % kLanes == 0) shared.rescale[head] = rescale;
}

template <int kHeadTiles>
__device__ __forceinline__ void value_tile(SplitKShared<kHeadTiles>& shared, int warp, int lane,
                                           float (&acc)[kHeadTiles][8][4]) {
#pragma unroll
  for (int m = 0; m < kHeadTiles; ++m) {
    const float low = shared.rescale[16 * m + lane / 4];
    const float high = shared.rescale[16 * m + lane / 4 + 8];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      acc[m][n][0] *= low;
      acc[m][n][1] *= low;
      acc[m][n][2] *= high;
      acc[m][n][3] *= high;
    }
  }
  const int matrix = lane / 8;
#pragma unroll
  for (int k = 0; k < kSplitKTileRows; k += 16) {
    std::uint32_t a[kHeadTiles][4];
#pragma unroll
    for (int m = 0; m < kHeadTiles; ++m) {
      device::load_matrix_x4(
          a[m], device::shared_address(&shared.weights[16 * m + lane % 16][k + 8 * (lane / 16)]));
    }
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      std::uint32_t b[4];  // transposed: (rows 0-7, cols 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15)
      device::load_matrix_x4_transposed(
          b, device::shared_address(&shared.rows[k + 8 * (matrix % 2) + lane % 8]
                                                [64 * warp + 8 * n + 8 * (matrix / 2)]));
#pragma unroll
      for (int m = 0; m < kHeadTiles; ++m) {
        device::mma_bf16(acc[m][n], a[m], b[0], b[1]);
        device::mma_bf16(acc[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

template <int kHeadTiles>
__global__ void __launch_bounds__(kSplitKThreads, kHeadTiles == 4 ? 1 : 2)
    split_k_kernel(SparseMlaProblem problem, float scale_log2, SparseMlaPartials partials) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<SplitKShared<kHeadTiles>*>(shared_bytes);
  constexpr int kHeads = 16 * kHeadTiles;
  device::allow_dependent_launch();
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int num_splits = static_cast<int>(gridDim.x);
  const int split = static_cast<int>(blockIdx.x);
  const int head_offset = kHeads * static_cast<int>(blockIdx.y);
  const std::int64_t token = blockIdx.z;
  const std::int64_t num_token_heads = std::int64_t{problem.shape.num_tokens} * problem.shape.num_heads;
  const std::int64_t first_token_head = token * problem.shape.num_heads + head_offset;

  SplitKRows slots;
  slots.window_rows = problem.window_rows + token * problem.shape.window_width;
  slots.compressed_rows = problem.compressed_rows + token * problem.shape.compressed_width;
  slots.window_count = min(problem.window_counts[token], problem.shape.window_width);
  slots.total =
      slots.window_count + min(problem.compressed_counts[token], problem.shape.compressed_width);
  const int tiles = (slots.total + kSplitKTileRows - 1) / kSplitKTileRows;
  const int tiles_per_split = (tiles + num_splits - 1) / num_splits;
  const int begin = split * tiles_per_split * kSplitKTileRows;
  const int end = min(begin + tiles_per_split * kSplitKTileRows, slots.total);
  if (begin >= end) {
    if (thread < kHeads) {
      partials.log2_sum[split * num_token_heads + first_token_head + thread] = -INFINITY;
    }
    return;
  }

  const std::int32_t first_rows = load_row_number(slots, begin, end, warp, lane);
  const std::int32_t second_rows = load_row_number(slots, begin + kSplitKTileRows, end, warp, lane);
  std::int32_t next_rows = load_row_number(slots, begin + 2 * kSplitKTileRows, end, warp, lane);
  gather_tile(shared, 0, begin, first_rows, slots, problem.window, problem.compressed, warp, lane);
  device::copy_async_commit();
  gather_tile(shared, 1, begin + kSplitKTileRows, second_rows, slots, problem.window, problem.compressed,
              warp, lane);
  device::copy_async_commit();
  for (int i = thread; i < kHeads * (kKvHeadDim / 8); i += kSplitKThreads) {
    const int head = i / (kKvHeadDim / 8);
    const int chunk = i % (kKvHeadDim / 8);
    *reinterpret_cast<uint4*>(&shared.query[head][8 * chunk]) = *reinterpret_cast<const uint4*>(
        problem.query + (first_token_head + head) * kKvHeadDim + 8 * chunk);
  }

  float acc[kHeadTiles][8][4] = {};
  RunningSoftmax state;
  int stage = 0;
  for (int first = begin; first < end; first += kSplitKTileRows) {
    device::copy_async_wait<1>();
    __syncwarp();
    dequantise_tile(shared, stage, warp, lane);
    __syncthreads();
    score_tile(shared, scale_log2, warp, lane);
    __syncthreads();
    softmax_tile(shared, stage, thread, state);
    __syncthreads();
    // Every thread is past its last read of raw[stage]: refill it while the values are multiplied.
    gather_tile(shared, stage, first + kSplitKStages * kSplitKTileRows, next_rows, slots, problem.window,
                problem.compressed, warp, lane);
    device::copy_async_commit();
    next_rows = load_row_number(slots, first + (kSplitKStages + 1) * kSplitKTileRows, end, warp, lane);
    value_tile<kHeadTiles>(shared, warp, lane, acc);
    stage ^= 1;
    __syncthreads();
  }
  device::copy_async_wait<0>();

  constexpr int kLanes = kSplitKThreads / kHeads;
  float sum = state.sum;
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset >>= 1) {
    sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  }
  if (thread % kLanes == 0) {
    const int head = thread / kLanes;
    shared.denominator[head] = sum;
    partials.log2_sum[split * num_token_heads + first_token_head + head] =
        sum > 0.0F ? state.largest + log2f(sum) : -INFINITY;
  }
  __syncthreads();
  float* out = partials.out + (split * num_token_heads + first_token_head) * kKvHeadDim;
#pragma unroll
  for (int m = 0; m < kHeadTiles; ++m) {
    const int head = 16 * m + lane / 4;
    const float low = shared.denominator[head];
    const float high = shared.denominator[head + 8];
    const float inverse_low = low > 0.0F ? 1.0F / low : 0.0F;
    const float inverse_high = high > 0.0F ? 1.0F / high : 0.0F;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int dim = 64 * warp + 8 * n + 2 * (lane % 4);
      *reinterpret_cast<float2*>(out + head * kKvHeadDim + dim) =
          make_float2(acc[m][n][0] * inverse_low, acc[m][n][1] * inverse_low);
      *reinterpret_cast<float2*>(out + (head + 8) * kKvHeadDim + dim) =
          make_float2(acc[m][n][2] * inverse_high, acc[m][n][3] * inverse_high);
    }
  }
}

template <int kHeadTiles>
cudaError_t launch_sparse_mla_split_k(const SparseMlaProblem& problem, int num_splits,
                                      cudaStream_t stream) {
  constexpr int kBytes = static_cast<int>(sizeof(SplitKShared<kHeadTiles>));
  const cudaError_t error = cudaFuncSetAttribute(
      split_k_kernel<kHeadTiles>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const dim3 grid(static_cast<unsigned>(num_splits),
                  static_cast<unsigned>(problem.shape.num_heads / (16 * kHeadTiles)),
                  static_cast<unsigned>(problem.shape.num_tokens));
  split_k_kernel<kHeadTiles><<<grid, kSplitKThreads, kBytes, stream>>>(
      problem, problem.softmax_scale * 1.4426950408889634F, sparse_mla_partials(problem, num_splits));
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels::detail
