// Sparse MLA decode on tensor cores. A block owns 16 x kHeadTiles heads of one token and a range of
// its rows; warp w of eight owns dimensions 64 w .. 64 w + 63, which are scale group w of a row
// (warp 7: the rotary part). So a warp gathers, dequantises and keeps its own 64 columns of the
// rows, and the only thing that warps exchange is scores. Per tile of 32 rows:
//   gather     each warp its 64 (or 128) bytes of every row by cp.async, two tiles ahead
//   dequantise E4M3 x UE8M0 -> BF16, exact (4 significant bits times a power of two), straight into
//   fragments: the
//              order of the dimensions does not matter to a score, so a lane takes 16 consecutive
//              ones of its row
//   scores     this warp's 64-deep part, m16n8k16 BF16, query fragments in registers
//   softmax    sum of the eight parts, online, in base 2, FP32; the accumulators are rescaled only
//   when the largest
//              score grows by more than 2^8
//   values     heads x 64 columns per warp, accumulators in registers, rows from the warp's own
//   shared memory
// Two block barriers per tile. Partial results of the splits are merged by sparse_mla_combine.
#pragma once

#include <cuda_bf16.h>

#include "kernels/attention/sparse_mla_launch.h"
#include "kernels/common/async_copy.cuh"
#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/formats.h"
#include "kernels/common/mma.cuh"

namespace fulcrum::kernels::detail {

inline constexpr int kSplitKThreads = 256;
inline constexpr int kSplitKWarps = kSplitKThreads / 32;
inline constexpr int kSplitKTileRows = 32;
inline constexpr int kSplitKRowGroups = kSplitKTileRows / 8;
inline constexpr int kSplitKStages = 2;
inline constexpr int kSplitKRopeWarp = kKvScales;
// Row strides that put the eight rows of an ldmatrix in different banks: odd multiples of 16 bytes.
inline constexpr int kSplitKValueStride = kKvScaleGroup + 8;     // BF16 elements
inline constexpr int kSplitKWeightStride = kSplitKTileRows + 8;  // BF16 elements
static_assert(kSplitKWarps * kKvScaleGroup == kKvHeadDim && kSplitKWarps == kKvScales + 1);

template <int kHeadTiles>
struct SplitKShared {
  static constexpr int kHeads = 16 * kHeadTiles;
  alignas(16) std::uint16_t values[kSplitKWarps][kSplitKTileRows][kSplitKValueStride];
  alignas(
      16) float scores[kSplitKWarps][kHeads][kSplitKTileRows];  // columns swizzled, score_column()
  alignas(16) std::uint16_t weights[kHeads][kSplitKWeightStride];
  // Warps 0-6: 64 bytes of a row each. Warp 7: its 128 bytes as two halves, so that a lane's two
  // 16-byte reads are as free of bank conflicts as the others' one.
  alignas(16) std::uint8_t raw[kSplitKStages][kSplitKWarps + 1][kSplitKTileRows][kKvScaleGroup];
  std::uint32_t raw_scales[kSplitKStages][kSplitKWarps]
                          [kSplitKTileRows];  // the word that holds the warp's code
  std::int32_t row_numbers[kSplitKStages][kSplitKWarps]
                          [kSplitKTileRows];  // two tiles ahead of their rows
  float rescale[kHeads];
  float denominator[kHeads];
};

// Where score column `column` of `head` is kept: groups of eight are exchanged by the head's low
// bits, so that the stores of a fragment (four heads x eight columns) and the loads of a softmax
// lane (two heads x sixteen) both hit all banks.
__device__ __forceinline__ int score_column(int head, int column) {
  return column ^ ((head & 1) << 4) ^ ((head & 2) << 2);
}

// Two of four E4M3 codes (in the high bytes of the halves of `codes`) -> a BF16 pair 2^-120 too
// small: the codes' exponent and mantissa bits land in BF16's lowest exponent and highest mantissa
// bits, subnormals included.
__device__ __forceinline__ std::uint32_t spread_e4m3(std::uint32_t codes) {
  return (codes & 0x80008000U) | ((codes >> 4) & 0x07f007f0U);
}

// 2^120 times the group's scale, twice. Exact for scales up to 2^7, that is rows up to 57344:
// RMSNorm bounds a row by sqrt(512) times its weight.
__device__ __forceinline__ std::uint32_t rebias_and_scale(std::uint32_t scale_code) {
  constexpr std::uint32_t kRebias = 120;
  return ((scale_code + kRebias) << 7) * 0x00010001U;
}

__device__ __forceinline__ std::uint32_t multiply_bf16x2(std::uint32_t a, std::uint32_t b) {
  __nv_bfloat162 x;
  __nv_bfloat162 y;
  static_assert(sizeof(x) == sizeof(a));
  memcpy(&x, &a, sizeof(a));
  memcpy(&y, &b, sizeof(b));
  x = __hmul2(x, y);
  memcpy(&a, &x, sizeof(a));
  return a;
}

// Four consecutive values d0..d3 are kept as the pairs (d1, d3), (d0, d2): the order in which E4M3
// codes come apart without a byte permutation. Scores do not depend on the order; store_outputs()
// undoes it.
__device__ __forceinline__ uint2 odd_even_pairs(std::uint32_t d01, std::uint32_t d23) {
  return make_uint2(__byte_perm(d01, d23, 0x7632), __byte_perm(d01, d23, 0x5410));
}

// The row slots of one token, window first.
struct SplitKSlots {
  const std::int32_t* window_rows;
  const std::int32_t* compressed_rows;
  int window_count;
  int end;  // of this split
};

// Where slot `slot` keeps its row number; nothing may be read there when slot >= slots.end.
__device__ __forceinline__ const std::int32_t* row_number_of(const SplitKSlots& slots, int slot) {
  return slot < slots.window_count ? slots.window_rows + slot
                                   : slots.compressed_rows + (slot - slots.window_count);
}

// Lane l gets the row in slot first + l, negative for none.
__device__ __forceinline__ std::int32_t load_row_number(const SplitKSlots& slots, int first,
                                                        int lane) {
  return first + lane < slots.end ? *row_number_of(slots, first + lane) : -1;
}

// Starts the copies of the warp's part of a tile, of its scales and of the row numbers two tiles
// on. Lane l holds the row of slot first + l. Returns bit r for every slot that holds a row.
// Nothing here waits for memory.
template <int kHeadTiles>
__device__ __forceinline__ std::uint32_t gather_tile(SplitKShared<kHeadTiles>& shared, int stage,
                                                     int first, std::int32_t row,
                                                     const SplitKSlots& slots, const KvPool& window,
                                                     const KvPool& compressed, int warp, int lane) {
  const bool valid = row >= 0;
  const std::uint32_t valid_rows = __ballot_sync(0xffffffffU, valid);
  const KvPool& pool = first + lane < slots.window_count ? window : compressed;
  const auto data =
      reinterpret_cast<std::uintptr_t>(pool.pages + kv_data_offset(pool, valid ? row : 0));
  copy_async<4>(&shared.raw_scales[stage][warp][lane],
                pool.pages + kv_scale_offset(pool, valid ? row : 0) + warp / 4 * 4, valid);
  const int later = first + kSplitKStages * kSplitKTileRows + lane;
  copy_async<4>(&shared.row_numbers[stage][warp][lane], row_number_of(slots, later),
                later < slots.end);
#pragma unroll
  for (int n = 0; n < kSplitKRowGroups; ++n) {
    const int r = 8 * n + lane / 4;
    const auto row_data = reinterpret_cast<const std::uint8_t*>(
        __shfl_sync(0xffffffffU, static_cast<unsigned long long>(data), r));
    const bool row_valid = (valid_rows >> r & 1U) != 0;
    std::uint8_t* target = &shared.raw[stage][warp][r][16 * (lane % 4)];
    if (warp != kSplitKRopeWarp) {
      copy_async<16>(target, row_data + kKvScaleGroup * warp + 16 * (lane % 4), row_valid);
    } else {
      constexpr int kHalf = kSplitKTileRows * kKvScaleGroup;
      const std::uint8_t* rope = row_data + kKvFp8Values + 32 * (lane % 4);
      copy_async<16>(target, rope, row_valid);
      copy_async<16>(target + kHalf, rope + 16, row_valid);
    }
  }
  return valid_rows;
}

// The eight BF16 pairs of a lane's 16 dimensions of row 8 n + lane / 4, odd and even apart in each
// four.
template <int kHeadTiles>
__device__ __forceinline__ void dequantise(const SplitKShared<kHeadTiles>& shared, int stage, int n,
                                           int warp, int lane, std::uint32_t (&pairs)[8]) {
  const int r = 8 * n + lane / 4;
  const uint4 low = *reinterpret_cast<const uint4*>(&shared.raw[stage][warp][r][16 * (lane % 4)]);
  if (warp == kSplitKRopeWarp) {
    const uint4 high =
        *reinterpret_cast<const uint4*>(&shared.raw[stage][warp + 1][r][16 * (lane % 4)]);
    const uint2 fours[4] = {odd_even_pairs(low.x, low.y), odd_even_pairs(low.z, low.w),
                            odd_even_pairs(high.x, high.y), odd_even_pairs(high.z, high.w)};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pairs[2 * i] = fours[i].x;
      pairs[2 * i + 1] = fours[i].y;
    }
    return;
  }
  const std::uint32_t factor =
      rebias_and_scale(shared.raw_scales[stage][warp][r] >> (8 * (warp % 4)) & 0xffU);
  const std::uint32_t words[4] = {low.x, low.y, low.z, low.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = multiply_bf16x2(spread_e4m3(words[i]), factor);
    pairs[2 * i + 1] = multiply_bf16x2(spread_e4m3(words[i] << 8), factor);
  }
}

// Query fragments of the warp's 64 dimensions. Depth step s of lane p uses dimensions 16 p + 4 s ..
// + 3, as dequantise() delivers those of the rows.
template <int kHeadTiles>
__device__ __forceinline__ void load_query(const std::uint16_t* heads, int warp, int lane,
                                           std::uint32_t (&query)[kHeadTiles][4][4]) {
#pragma unroll
  for (int m = 0; m < kHeadTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int head = 16 * m + 8 * half + lane / 4;
      const uint4* q = reinterpret_cast<const uint4*>(heads + head * kKvHeadDim +
                                                      kKvScaleGroup * warp + 16 * (lane % 4));
      const uint4 low = __ldg(q);
      const uint4 high = __ldg(q + 1);
      const uint2 fours[4] = {odd_even_pairs(low.x, low.y), odd_even_pairs(low.z, low.w),
                              odd_even_pairs(high.x, high.y), odd_even_pairs(high.z, high.w)};
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        query[m][s][half] = fours[s].x;
        query[m][s][half + 2] = fours[s].y;
      }
    }
  }
}

// Dequantises the warp's columns of a tile, keeps them for value_tile and leaves the warp's part of
// the scores.
template <int kHeadTiles>
__device__ __forceinline__ void score_tile(SplitKShared<kHeadTiles>& shared, int stage,
                                           const std::uint32_t (&query)[kHeadTiles][4][4], int warp,
                                           int lane) {
#pragma unroll
  for (int n = 0; n < kSplitKRowGroups; ++n) {
    std::uint32_t pairs[8];
    dequantise(shared, stage, n, warp, lane, pairs);
    uint4* kept = reinterpret_cast<uint4*>(&shared.values[warp][8 * n + lane / 4][16 * (lane % 4)]);
    kept[0] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    kept[1] = make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
    float c[kHeadTiles][4] = {};
#pragma unroll
    for (int s = 0; s < 4; ++s) {
#pragma unroll
      for (int m = 0; m < kHeadTiles; ++m) {
        device::mma_bf16(c[m], query[m][s], pairs[2 * s], pairs[2 * s + 1]);
      }
    }
#pragma unroll
    for (int m = 0; m < kHeadTiles; ++m) {
      const int head = 16 * m + lane / 4;  // head + 8 has the same swizzle
      const int column = score_column(head, 8 * n + 2 * (lane % 4));
      *reinterpret_cast<float2*>(&shared.scores[warp][head][column]) =
          make_float2(c[m][0], c[m][1]);
      *reinterpret_cast<float2*>(&shared.scores[warp][head + 8][column]) =
          make_float2(c[m][2], c[m][3]);
    }
  }
}

// Running softmax of one head, held by the kSplitKThreads / heads threads that share the head.
// `sum` is this thread's share of the denominator.
struct RunningSoftmax {
  float base =
      -INFINITY;  // what scores are taken relative to; at most kMaxExcess below the largest so far
  float sum = 0.0F;
};

// Weights grow to 2^8 before the base moves: no loss in BF16 or FP32, and almost every tile is
// spared the rescaling.
inline constexpr float kMaxExcess = 8.0F;

template <int kHeadTiles>
__device__ __forceinline__ void softmax_tile(SplitKShared<kHeadTiles>& shared, std::uint32_t valid,
                                             float scale_log2, int thread, RunningSoftmax& state) {
  constexpr int kLanes = kSplitKThreads / (16 * kHeadTiles);  // threads per head
  constexpr int kColumns = kSplitKTileRows / kLanes;
  constexpr int kVector = kColumns < 4 ? kColumns : 4;  // consecutive columns
  constexpr int kVectors = kColumns / kVector;
  const int head = thread / kLanes;
  const auto column_of = [&](int v) {
    return kSplitKTileRows / kVectors * v + kVector * (thread % kLanes);
  };
  float score[kColumns] = {};
#pragma unroll
  for (int w = 0; w < kSplitKWarps; ++w) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const float* part = &shared.scores[w][head][score_column(head, column_of(v))];
      if constexpr (kVector == 4) {
        const float4 p = *reinterpret_cast<const float4*>(part);
        score[4 * v] += p.x;
        score[4 * v + 1] += p.y;
        score[4 * v + 2] += p.z;
        score[4 * v + 3] += p.w;
      } else {
        const float2 p = *reinterpret_cast<const float2*>(part);
        score[0] += p.x;
        score[1] += p.y;
      }
    }
  }
  float largest = -INFINITY;
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const bool is_row = (valid >> (column_of(i / kVector) + i % kVector) & 1U) != 0;
    score[i] = is_row ? score[i] * scale_log2 : -INFINITY;
    largest = fmaxf(largest, score[i]);
  }
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset >>= 1) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, offset));
  }
  float rescale = 1.0F;
  if (largest > state.base + kMaxExcess) {  // also the first row: the base is -inf
    rescale = device::exp2_flush(state.base - largest);
    state.base = largest;
    state.sum *= rescale;
  }
  const float base = state.base == -INFINITY ? 0.0F : state.base;  // exp2(-inf - -inf) would be NaN
#pragma unroll
  for (int i = 0; i < kColumns; i += 2) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(device::exp2_flush(score[i] - base),
                                                      device::exp2_flush(score[i + 1] - base));
    // The denominator sums the rounded weights, so that the weights that are used add up to one.
    state.sum += __low2float(pair) + __high2float(pair);
    *reinterpret_cast<__nv_bfloat162*>(
        &shared.weights[head][column_of(i / kVector) + i % kVector]) = pair;
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
    if (!__any_sync(0xffffffffU, low != 1.0F || high != 1.0F)) continue;
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
      std::uint32_t
          b[4];  // transposed: (rows 0-7, cols 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15)
      device::load_matrix_x4_transposed(
          b, device::shared_address(
                 &shared.values[warp][k + 8 * (matrix % 2) + lane % 8][8 * n + 8 * (matrix / 2)]));
#pragma unroll
      for (int m = 0; m < kHeadTiles; ++m) {
        device::mma_bf16(acc[m][n], a[m], b[0], b[1]);
        device::mma_bf16(acc[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// The warp's share of the outputs, normalised. A lane holds columns 2 p, 2 p + 1 of 16-column
// groups of stored order; undoing that order and exchanging with the lane next to it leaves each
// lane four consecutive dimensions.
template <int kHeadTiles>
__device__ __forceinline__ void store_outputs(const SplitKShared<kHeadTiles>& shared,
                                              const float (&acc)[kHeadTiles][8][4], int warp,
                                              int lane, float* out) {
  const bool odd = (lane & 1) != 0;
#pragma unroll
  for (int m = 0; m < kHeadTiles; ++m) {
    const int head = 16 * m + lane / 4 + (odd ? 8 : 0);
    const float denominator = shared.denominator[head];
    const float inverse = denominator > 0.0F ? 1.0F / denominator : 0.0F;
    float* row = out + head * kKvHeadDim + kKvScaleGroup * warp + 4 * (lane % 4 / 2);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      // Even lanes (stored columns 4 i, 4 i + 1 = dimensions 1, 3) keep the head of the tile's
      // upper half, odd lanes (dimensions 0, 2) the one eight below.
      const float give0 = odd ? acc[m][n][0] : acc[m][n][2];
      const float give1 = odd ? acc[m][n][1] : acc[m][n][3];
      const float take0 = __shfl_xor_sync(0xffffffffU, give0, 1);
      const float take1 = __shfl_xor_sync(0xffffffffU, give1, 1);
      const float4 four = odd ? make_float4(acc[m][n][2], take0, acc[m][n][3], take1)
                              : make_float4(take0, acc[m][n][0], take1, acc[m][n][1]);
      *reinterpret_cast<float4*>(row + 8 * n) =
          make_float4(four.x * inverse, four.y * inverse, four.z * inverse, four.w * inverse);
    }
  }
}

}  // namespace fulcrum::kernels::detail
