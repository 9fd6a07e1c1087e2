// Sparse MLA decode on CUDA cores, in the shape of the fallback kernel that sm_120 builds ran in
// June 2026: one block per (token, head), a loop over tiles of the padded row width, every head
// gathers and dequantises the rows for itself, FP32 arithmetic; window and compressed rows in
// separate launches, then a merge. Scores and sums run over every padded slot, so the cost is
// linear in tokens x heads x width; an empty slot saves its loads and their conversion (one H200,
// 16 tokens, 64 of 512 slots filled: 290 us against 521 us with all of them).
#include <cuda_bf16.h>

#include "kernels/attention/sparse_mla_launch.h"
#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/formats.h"
#include "kernels/common/warp.cuh"

namespace fulcrum::kernels {
namespace {

constexpr float kLog2E = 1.4426950408889634F;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kTileRows = 16;
constexpr int kRowsPerWarp = kTileRows / kWarps;
constexpr int kDimsPerLane = kKvHeadDim / 32;
constexpr int kFp8Words = kKvFp8Values / 4;

// Gathers one row into `tile` as FP32; a row outside the valid slots becomes zeros.
__device__ __forceinline__ void gather_row(const KvPool& pool, std::int32_t row, float* tile,
                                           int lane) {
  const std::uint8_t* data = pool.pages + kv_data_offset(pool, row < 0 ? 0 : row);
  const std::uint8_t* scales = pool.pages + kv_scale_offset(pool, row < 0 ? 0 : row);
#pragma unroll
  for (int i = 0; i < (kFp8Words + 31) / 32; ++i) {
    const int word = lane + 32 * i;
    if (word >= kFp8Words) break;
    float4 values = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (row >= 0) {
      const std::uint32_t codes = *reinterpret_cast<const std::uint32_t*>(data + 4 * word);
      const float scale = decode_e8m0(scales[4 * word / kKvScaleGroup]);
      values.x = decode_e4m3(static_cast<std::uint8_t>(codes)) * scale;
      values.y = decode_e4m3(static_cast<std::uint8_t>(codes >> 8)) * scale;
      values.z = decode_e4m3(static_cast<std::uint8_t>(codes >> 16)) * scale;
      values.w = decode_e4m3(static_cast<std::uint8_t>(codes >> 24)) * scale;
    }
    *reinterpret_cast<float4*>(tile + 4 * word) = values;
  }
  std::uint32_t rope = 0;
  if (row >= 0) rope = *reinterpret_cast<const std::uint32_t*>(data + kKvFp8Values + 4 * lane);
  *reinterpret_cast<float2*>(tile + kKvFp8Values + 2 * lane) =
      make_float2(float_from_bits(rope << 16), float_from_bits(rope & 0xffff0000U));
}

__global__ void __launch_bounds__(kThreads)
    row_loop_kernel(const std::uint16_t* __restrict__ query, KvPool pool,
                    const std::int32_t* __restrict__ rows, const std::int32_t* __restrict__ counts,
                    int width, float scale_log2, float* __restrict__ partial_out,
                    float* __restrict__ partial_log2_sum) {
  __shared__ __align__(16) float tile[kTileRows][kKvHeadDim];
  __shared__ float scores[kTileRows];
  device::allow_dependent_launch();
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const std::int64_t token = blockIdx.x;
  const std::int64_t token_head = token * gridDim.y + blockIdx.y;
  const int count = counts[token];
  const std::int32_t* token_rows = rows + token * width;

  float q[kDimsPerLane];
#pragma unroll
  for (int i = 0; i < kDimsPerLane; ++i) {
    q[i] = decode_bf16(query[token_head * kKvHeadDim + lane + 32 * i]) * scale_log2;
  }
  float acc0 = 0.0F;  // dimensions `thread` and `thread` + 256
  float acc1 = 0.0F;
  float largest = -INFINITY;
  float sum = 0.0F;

  for (int first = 0; first < width; first += kTileRows) {
#pragma unroll
    for (int j = 0; j < kRowsPerWarp; ++j) {
      const int r = warp * kRowsPerWarp + j;
      const int slot = first + r;
      const std::int32_t row = slot < width && slot < count ? token_rows[slot] : -1;
      gather_row(pool, row, tile[r], lane);
      __syncwarp();
      float score = 0.0F;
#pragma unroll
      for (int i = 0; i < kDimsPerLane; ++i) score = fmaf(q[i], tile[r][lane + 32 * i], score);
      score = device::warp_sum(score);
      if (lane == 0) scores[r] = row >= 0 ? score : -INFINITY;
    }
    __syncthreads();
    const float score = scores[lane % kTileRows];
    const float new_largest = fmaxf(largest, device::warp_max(score));
    // exp2(-inf - -inf) would be NaN: with no row seen yet, nothing is accumulated either.
    const float base = new_largest == -INFINITY ? 0.0F : new_largest;
    const float rescale = exp2f(largest - base);
    const float weight = exp2f(score - base);
    largest = new_largest;
    sum *= rescale;
    acc0 *= rescale;
    acc1 *= rescale;
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) {
      const float w = __shfl_sync(0xffffffffU, weight, r);
      sum += w;
      acc0 = fmaf(w, tile[r][thread], acc0);
      acc1 = fmaf(w, tile[r][thread + kThreads], acc1);
    }
    __syncthreads();
  }

  const float inverse = sum > 0.0F ? 1.0F / sum : 0.0F;
  partial_out[token_head * kKvHeadDim + thread] = acc0 * inverse;
  partial_out[token_head * kKvHeadDim + thread + kThreads] = acc1 * inverse;
  if (thread == 0) partial_log2_sum[token_head] = sum > 0.0F ? largest + log2f(sum) : -INFINITY;
}

}  // namespace

cudaError_t sparse_mla_row_loop(const SparseMlaProblem& problem, cudaStream_t stream) {
  const SparseMlaShape& shape = problem.shape;
  if (shape.num_tokens <= 0 || shape.num_heads <= 0) return cudaErrorInvalidValue;
  const dim3 grid(static_cast<unsigned>(shape.num_tokens), static_cast<unsigned>(shape.num_heads));
  const detail::SparseMlaPartials partials = detail::sparse_mla_partials(problem, 2);
  const std::int64_t token_heads = std::int64_t{shape.num_tokens} * shape.num_heads;
  const float scale_log2 = problem.softmax_scale * kLog2E;
  row_loop_kernel<<<grid, kThreads, 0, stream>>>(problem.query, problem.window, problem.window_rows,
                                                 problem.window_counts, shape.window_width,
                                                 scale_log2, partials.out, partials.log2_sum);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  row_loop_kernel<<<grid, kThreads, 0, stream>>>(
      problem.query, problem.compressed, problem.compressed_rows, problem.compressed_counts,
      shape.compressed_width, scale_log2, partials.out + token_heads * kKvHeadDim,
      partials.log2_sum + token_heads);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  return detail::sparse_mla_combine(problem, 2, stream);
}

}  // namespace fulcrum::kernels
