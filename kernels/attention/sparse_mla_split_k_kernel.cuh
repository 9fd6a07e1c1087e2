// The split-K kernel itself and its launch: the loop over tiles of sparse_mla_split_k.cuh.
#pragma once

#include "kernels/attention/sparse_mla_split_k.cuh"

namespace fulcrum::kernels::detail {

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
  const std::int64_t token = blockIdx.z;
  const std::int64_t num_token_heads =
      std::int64_t{problem.shape.num_tokens} * problem.shape.num_heads;
  const std::int64_t first_token_head = token * problem.shape.num_heads + kHeads * blockIdx.y;

  SplitKSlots slots;
  slots.window_rows = problem.window_rows + token * problem.shape.window_width;
  slots.compressed_rows = problem.compressed_rows + token * problem.shape.compressed_width;
  slots.window_count = min(problem.window_counts[token], problem.shape.window_width);
  const int total =
      slots.window_count + min(problem.compressed_counts[token], problem.shape.compressed_width);
  const int tiles = (total + kSplitKTileRows - 1) / kSplitKTileRows;
  const int tiles_per_split = (tiles + num_splits - 1) / num_splits;
  const int begin = split * tiles_per_split * kSplitKTileRows;
  slots.end = min(begin + tiles_per_split * kSplitKTileRows, total);
  float* log2_sums = partials.log2_sum + split * num_token_heads + first_token_head;
  if (begin >= slots.end) {
    if (thread < kHeads) log2_sums[thread] = -INFINITY;
    return;
  }

  const auto gather = [&](int stage, int first, std::int32_t row) {
    const std::uint32_t valid = gather_tile(shared, stage, first, row, slots, problem.window,
                                            problem.compressed, warp, lane);
    commit_copies();
    return valid;
  };
  const std::int32_t first_rows = load_row_number(slots, begin, lane);
  const std::int32_t second_rows = load_row_number(slots, begin + kSplitKTileRows, lane);
  std::uint32_t query[kHeadTiles][4][4];
  load_query<kHeadTiles>(problem.query + first_token_head * kKvHeadDim, warp, lane, query);
  std::uint32_t valid = gather(0, begin, first_rows);
  std::uint32_t next_valid = gather(1, begin + kSplitKTileRows, second_rows);

  float acc[kHeadTiles][8][4] = {};
  RunningSoftmax state;
  int stage = 0;
#pragma unroll 1
  for (int first = begin; first < slots.end; first += kSplitKTileRows) {
    wait_copies<kSplitKStages - 1>();
    __syncwarp();
    score_tile(shared, stage, query, warp, lane);
    const int later = first + kSplitKStages * kSplitKTileRows;
    const std::int32_t later_row =
        later + lane < slots.end ? shared.row_numbers[stage][warp][lane] : -1;
    __syncwarp();  // The warp is past its reads of this stage, and its columns of the rows are
                   // complete.
    const std::uint32_t later_valid = gather(stage, later, later_row);
    __syncthreads();
    softmax_tile(shared, valid, scale_log2, thread, state);
    valid = next_valid;
    next_valid = later_valid;
    __syncthreads();
    value_tile<kHeadTiles>(shared, warp, lane, acc);
    __syncwarp();  // The next tile overwrites the warp's columns.
    stage ^= 1;
  }
  wait_copies<0>();

  constexpr int kLanes = kSplitKThreads / kHeads;
  float sum = state.sum;
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset >>= 1) {
    sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  }
  if (thread % kLanes == 0) {
    const int head = thread / kLanes;
    shared.denominator[head] = sum;
    log2_sums[head] = sum > 0.0F ? state.base + log2f(sum) : -INFINITY;
  }
  __syncthreads();
  store_outputs<kHeadTiles>(
      shared, acc, warp, lane,
      partials.out + (split * num_token_heads + first_token_head) * kKvHeadDim);
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
      problem, problem.softmax_scale * 1.4426950408889634F,
      sparse_mla_partials(problem, num_splits));
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels::detail
