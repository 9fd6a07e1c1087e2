// Sparse MLA decode with Hopper's warpgroup products. A block of two warpgroups owns kHeads heads
// of one token and a range of its rows. Rows come in tiles of 64 and are the M of the score product
// and the depth of the value product, heads are the N of both, so 16 heads waste nothing:
//   scores^T (64 rows x heads) = K (64 x 512)    Q^T (512 x heads)   each warpgroup half the depth
//   out^T (512 x heads)       += K^T (512 x 64)  W^T (64 x heads)    each warpgroup half the rows
// K lies in shared memory once, dequantised to BF16 in eight sub-tiles of 64 dimensions, and is the
// first operand of both: by rows for scores, along the depth for values.
// A tile's raw rows are in registers while the tile before it is multiplied (nine 16-byte pieces a
// thread, 37 KB a block in flight), its row numbers one tile further ahead.
// The splits of a token's heads form a cluster and merge through each other's shared memory:
// partial outputs in global memory and the kernel that reads them took 5 us of 22 at 64 tokens of
// 16 heads. Within every four FP8 dimensions the order is 1 3 0 2, which is how codes come apart
// without byte permutations; the query is stored in that order too and keep_outputs() undoes it.
#pragma once

#include <cooperative_groups.h>

#include "kernels/attention/sparse_mla_split_k.cuh"
#include "kernels/common/wgmma.cuh"

namespace fulcrum::kernels::detail {

inline constexpr int kWgmmaThreads = 256;
inline constexpr int kWgmmaTileRows = 64;
inline constexpr int kSubTiles = kKvHeadDim / 64;
inline constexpr int kSubTileBytes = kWgmmaTileRows * 128;
// Four threads share a row: thread t of them takes its 16-byte pieces t, t + 4, ...
inline constexpr int kRowThreads = 4;
inline constexpr int kFp8Pieces = kKvFp8Values / (16 * kRowThreads);  // one per scale group
inline constexpr int kRopePieces = 2 * kKvRopeValues / (16 * kRowThreads);
static_assert(kWgmmaTileRows * kRowThreads == kWgmmaThreads && kFp8Pieces == kKvScales);

template <int kHeads>
struct WgmmaShared {
  static constexpr int kScorePitch = kWgmmaTileRows + 4;  // floats; fragments then hit all banks
  alignas(1024) std::uint8_t keys[kSubTiles][kSubTileBytes];
  alignas(1024) std::uint8_t query[kSubTiles][kHeads * 128];
  alignas(1024) std::uint8_t weights[kHeads * 128];  // heads x 64 rows, BF16
  alignas(16) float scores[2][kHeads][kScorePitch];  // of either warpgroup
  alignas(16) std::int32_t is_row[kWgmmaTileRows];
  float rescale[kHeads];
  float inverse[kHeads];   // of the denominator
  float log2_sum[kHeads];  // of the split; -inf without a row

  // The split's outputs, FP32, in the place of keys, query and weights.
  static constexpr int kOutputPitch = kKvHeadDim + 4;  // floats; fragments then hit all banks
  __device__ float* outputs() { return reinterpret_cast<float*>(keys[0]); }
  __device__ const float* outputs() const { return reinterpret_cast<const float*>(keys[0]); }
};

// What the slot holds: a row number, negative for none.
__device__ __forceinline__ std::int32_t row_in_slot(const SplitKSlots& slots, int slot) {
  return slot < slots.end ? __ldg(row_number_of(slots, slot)) : -1;
}

// This thread's part of its row of a tile.
struct RawRow {
  uint4 fp8[kFp8Pieces];
  uint4 rope[kRopePieces];
  uint2 scales;
  bool is_row;
};

__device__ __forceinline__ void load_raw(const SparseMlaProblem& problem, const SplitKSlots& slots,
                                         int slot, std::int32_t row, int thread, RawRow& raw) {
  raw.is_row = row >= 0;
  const KvPool& pool = slot < slots.window_count ? problem.window : problem.compressed;
  const std::uint8_t* data =
      pool.pages + kv_data_offset(pool, raw.is_row ? row : 0) + 16 * (thread % kRowThreads);
  const auto load = [&](int offset) {
    return raw.is_row ? device::load_streaming(data + offset) : make_uint4(0, 0, 0, 0);
  };
#pragma unroll
  for (int j = 0; j < kFp8Pieces; ++j) raw.fp8[j] = load(16 * kRowThreads * j);
#pragma unroll
  for (int j = 0; j < kRopePieces; ++j) raw.rope[j] = load(kKvFp8Values + 16 * kRowThreads * j);
  raw.scales = make_uint2(0, 0);
  if (raw.is_row) {
    raw.scales = __ldg(reinterpret_cast<const uint2*>(pool.pages + kv_scale_offset(pool, row)));
  }
}

template <int kHeads>
__device__ __forceinline__ void store_keys(WgmmaShared<kHeads>& shared, const RawRow& raw,
                                           int thread) {
  const int row = thread / kRowThreads;
  const int piece = thread % kRowThreads;
  std::uint8_t* low = shared.keys[0] + device::swizzled_offset(row, 2 * piece);
  std::uint8_t* high = shared.keys[0] + device::swizzled_offset(row, 2 * piece + 1);
#pragma unroll
  for (int j = 0; j < kFp8Pieces; ++j) {
    const std::uint32_t code = (j < 4 ? raw.scales.x : raw.scales.y) >> (8 * (j % 4)) & 0xffU;
    const std::uint32_t factor = rebias_and_scale(code);
    const std::uint32_t words[4] = {raw.fp8[j].x, raw.fp8[j].y, raw.fp8[j].z, raw.fp8[j].w};
    std::uint32_t pairs[8];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      pairs[2 * k] = multiply_bf16x2(spread_e4m3(words[k]), factor);
      pairs[2 * k + 1] = multiply_bf16x2(spread_e4m3(words[k] << 8), factor);
    }
    *reinterpret_cast<uint4*>(low + j * kSubTileBytes) =
        make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    *reinterpret_cast<uint4*>(high + j * kSubTileBytes) =
        make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
  }
#pragma unroll
  for (int j = 0; j < kRopePieces; ++j) {
    *reinterpret_cast<uint4*>(shared.keys[kSubTiles - 1] +
                              device::swizzled_offset(row, piece + kRowThreads * j)) = raw.rope[j];
  }
  if (piece == 0) shared.is_row[row] = raw.is_row ? 1 : 0;
}

template <int kHeads>
__device__ __forceinline__ void load_query_tiles(WgmmaShared<kHeads>& shared,
                                                 const std::uint16_t* heads, int thread) {
  constexpr int kChunks = kKvHeadDim / 8;
#pragma unroll
  for (int i = thread; i < kHeads * kChunks; i += kWgmmaThreads) {
    const int head = i / kChunks;
    const int chunk = i % kChunks;
    uint4 q = __ldg(reinterpret_cast<const uint4*>(heads + head * kKvHeadDim) + chunk);
    if (chunk < kKvFp8Values / 8) {
      const uint2 low = odd_even_pairs(q.x, q.y);
      const uint2 high = odd_even_pairs(q.z, q.w);
      q = make_uint4(low.x, low.y, high.x, high.y);
    }
    *reinterpret_cast<uint4*>(shared.query[chunk / 8] + device::swizzled_offset(head, chunk % 8)) =
        q;
  }
}

// This warpgroup's part of the scores, left in shared.scores[warpgroup].
template <int kHeads>
__device__ __forceinline__ void score_rows(WgmmaShared<kHeads>& shared, int warpgroup, int thread) {
  float d[kHeads / 2];
  device::warpgroup_arrive();
#pragma unroll
  for (int s = 0; s < kSubTiles / 2; ++s) {
    const int sub = kSubTiles / 2 * warpgroup + s;
    const std::uint64_t a = device::swizzled_descriptor(shared.keys[sub]);
    const std::uint64_t b = device::swizzled_descriptor(shared.query[sub]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      device::wgmma_bf16<false>(d, a + k * device::kDescriptorStep32,
                                b + k * device::kDescriptorStep32, s > 0 || k > 0);
    }
  }
  device::warpgroup_commit();
  device::warpgroup_wait();
  const int row = 16 * (thread / 32 % 4) + thread % 32 / 4;
#pragma unroll
  for (int j = 0; j < kHeads / 8; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      shared.scores[warpgroup][8 * j + 2 * (thread % 4) + c % 2][row + c / 2 * 8] = d[4 * j + c];
    }
  }
}

// As softmax_tile() of the portable kernel, over 64 rows; leaves the weights as BF16.
template <int kHeads>
__device__ __forceinline__ void softmax_rows(WgmmaShared<kHeads>& shared, float scale_log2,
                                             int thread, RunningSoftmax& state) {
  constexpr int kLanes = kWgmmaThreads / kHeads;  // threads per head
  constexpr int kVectors = kWgmmaTileRows / (4 * kLanes);
  const int head = thread / kLanes;
  float score[4 * kVectors];
  float largest = -INFINITY;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int row = 4 * (thread % kLanes + kLanes * v);
    const float4 a = *reinterpret_cast<const float4*>(&shared.scores[0][head][row]);
    const float4 b = *reinterpret_cast<const float4*>(&shared.scores[1][head][row]);
    const int4 is_row = *reinterpret_cast<const int4*>(&shared.is_row[row]);
    const int rows[4] = {is_row.x, is_row.y, is_row.z, is_row.w};
    const float sums[4] = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      score[4 * v + i] = rows[i] != 0 ? sums[i] * scale_log2 : -INFINITY;
      largest = fmaxf(largest, score[4 * v + i]);
    }
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
  for (int v = 0; v < kVectors; ++v) {
    const int row = 4 * (thread % kLanes + kLanes * v);
    __nv_bfloat162 pair[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      pair[i] = __floats2bfloat162_rn(device::exp2_flush(score[4 * v + 2 * i] - base),
                                      device::exp2_flush(score[4 * v + 2 * i + 1] - base));
      state.sum += __low2float(pair[i]) + __high2float(pair[i]);
    }
    uint2 packed;
    static_assert(sizeof(packed) == sizeof(pair));
    memcpy(&packed, pair, sizeof(packed));
    *reinterpret_cast<uint2*>(shared.weights + device::swizzled_offset(head, row / 8) +
                              2 * (row % 8)) = packed;
  }
  if (thread % kLanes == 0) shared.rescale[head] = rescale;
}

template <int kHeads>
using OutputTiles = float[kSubTiles / 2][kHeads / 2];

template <int kHeads>
__device__ __forceinline__ void value_rows(const WgmmaShared<kHeads>& shared, int warpgroup,
                                           int thread, OutputTiles<kHeads>& acc) {
#pragma unroll
  for (int j = 0; j < kHeads / 8; ++j) {
    const float2 factor =
        *reinterpret_cast<const float2*>(&shared.rescale[8 * j + 2 * (thread % 4)]);
    if (!__any_sync(0xffffffffU, factor.x != 1.0F || factor.y != 1.0F)) continue;
#pragma unroll
    for (int s = 0; s < kSubTiles / 2; ++s) {
#pragma unroll
      for (int c = 0; c < 4; ++c) acc[s][4 * j + c] *= c % 2 == 0 ? factor.x : factor.y;
    }
  }
  device::warpgroup_arrive();
  const std::uint64_t b = device::swizzled_descriptor(shared.weights);
#pragma unroll
  for (int s = 0; s < kSubTiles / 2; ++s) {
    const std::uint64_t a = device::swizzled_descriptor(shared.keys[kSubTiles / 2 * warpgroup + s]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      device::wgmma_bf16<true>(acc[s], a + k * device::kDescriptorStep16Rows,
                               b + k * device::kDescriptorStep32, true);
    }
  }
  device::warpgroup_commit();
  device::warpgroup_wait();
}

// Leaves the warpgroup's half of this split's normalised outputs in shared.outputs().
template <int kHeads>
__device__ __forceinline__ void keep_outputs(WgmmaShared<kHeads>& shared,
                                             const OutputTiles<kHeads>& acc, int warpgroup,
                                             int thread) {
  constexpr int kPitch = WgmmaShared<kHeads>::kOutputPitch;
  const int stored = 16 * (thread / 32 % 4) + thread % 32 / 4;  // and 8 below
  // Stored places 0 1 2 3 of a four hold dimensions 1 3 0 2.
  constexpr std::uint32_t kDimensions = 0x2031U;
  const int dimension = stored / 4 * 4 + static_cast<int>(kDimensions >> (4 * (stored % 4)) & 15U);
#pragma unroll
  for (int j = 0; j < kHeads / 8; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int head = 8 * j + 2 * (thread % 4) + c % 2;
      const float inverse = shared.inverse[head];
      float* row = shared.outputs() + head * kPitch + c / 2 * 8;
#pragma unroll
      for (int s = 0; s < kSubTiles / 2; ++s) {
        const int sub = kSubTiles / 2 * warpgroup + s;
        row[64 * sub + (sub == kSubTiles - 1 ? stored : dimension)] = acc[s][4 * j + c] * inverse;
      }
    }
  }
}

// Merges the splits, which are the blocks of this cluster, adds the sink and writes this block's
// share of the outputs.
template <int kHeads>
__device__ __forceinline__ void merge_splits(WgmmaShared<kHeads>& shared, const float* sink,
                                             std::uint16_t* out, int thread) {
  const auto cluster = cooperative_groups::this_cluster();
  const int num_splits = static_cast<int>(cluster.num_blocks());
  constexpr int kFours = kKvHeadDim / 4;
  for (int i = static_cast<int>(cluster.block_rank()) * kWgmmaThreads + thread; i < kHeads * kFours;
       i += num_splits * kWgmmaThreads) {
    const int head = i / kFours;
    const int dim = 4 * (i % kFours);
    float4 part[kSparseMlaSm90MaxSplits];
    float log2_sum[kSparseMlaSm90MaxSplits];
    const float sink_log2 = __ldg(sink + head) * 1.4426950408889634F;
    float largest = sink_log2;
#pragma unroll
    for (int s = 0; s < kSparseMlaSm90MaxSplits; ++s) {
      log2_sum[s] = -INFINITY;
      if (s >= num_splits) continue;
      const WgmmaShared<kHeads>& other = *cluster.map_shared_rank(&shared, s);
      log2_sum[s] = other.log2_sum[head];
      part[s] = *reinterpret_cast<const float4*>(other.outputs() +
                                                 head * WgmmaShared<kHeads>::kOutputPitch + dim);
      largest = fmaxf(largest, log2_sum[s]);
    }
    const float base = largest == -INFINITY ? 0.0F : largest;
    float denominator = exp2f(sink_log2 - base);
    float4 sum = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll
    for (int s = 0; s < kSparseMlaSm90MaxSplits; ++s) {
      if (s >= num_splits) continue;
      const float weight = exp2f(log2_sum[s] - base);
      denominator += weight;
      sum.x += weight * part[s].x;
      sum.y += weight * part[s].y;
      sum.z += weight * part[s].z;
      sum.w += weight * part[s].w;
    }
    // With a sink of -inf and no row at all there is nothing to average: the output is zero.
    const float inverse = denominator > 0.0F ? 1.0F / denominator : 0.0F;
    const auto pair = [&](float a, float b) {
      return encode_bf16(a * inverse) | static_cast<std::uint32_t>(encode_bf16(b * inverse)) << 16;
    };
    *reinterpret_cast<uint2*>(out + head * kKvHeadDim + dim) =
        make_uint2(pair(sum.x, sum.y), pair(sum.z, sum.w));
  }
}

}  // namespace fulcrum::kernels::detail
