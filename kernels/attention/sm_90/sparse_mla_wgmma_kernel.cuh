// The loop over tiles of sparse_mla_wgmma.cuh, and its launch.
#pragma once

#include "kernels/attention/sm_90/sparse_mla_wgmma.cuh"

namespace fulcrum::kernels::detail {

template <int kHeads>
__global__ void __launch_bounds__(kWgmmaThreads, kHeads == 64 ? 1 : 2)
    sparse_mla_wgmma_kernel(SparseMlaProblem problem, float scale_log2,
                            SparseMlaPartials partials) {
  extern __shared__ unsigned char shared_bytes[];
  // The swizzle needs 1024-byte tiles; dynamic shared memory promises 16. An offset, not a rounded
  // address: the compiler must still see that this is shared memory.
  auto& shared = *reinterpret_cast<WgmmaShared<kHeads>*>(
      shared_bytes + (-device::shared_address(shared_bytes) & 1023U));
  device::allow_dependent_launch();
  const int thread = static_cast<int>(threadIdx.x);
  // The same in all lanes, and known to be: descriptors then live in uniform registers.
  const int warpgroup = __shfl_sync(0xffffffffU, thread / 128, 0);
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
  const int tiles = (total + kWgmmaTileRows - 1) / kWgmmaTileRows;
  const int tiles_per_split = (tiles + num_splits - 1) / num_splits;
  const int begin = split * tiles_per_split * kWgmmaTileRows;
  slots.end = min(begin + tiles_per_split * kWgmmaTileRows, total);
  float* log2_sums = partials.log2_sum + split * num_token_heads + first_token_head;
  if (begin >= slots.end) {
    if (thread < kHeads) log2_sums[thread] = -INFINITY;
    return;
  }

  const int slot0 = begin + thread / kRowThreads;  // the thread's row of the first tile
  const std::int32_t row = row_in_slot(slots, slot0);
  std::int32_t next_row = row_in_slot(slots, slot0 + kWgmmaTileRows);
  RawRow raw;
  load_raw(problem, slots, slot0, row, thread, raw);
  load_query_tiles(shared, problem.query + first_token_head * kKvHeadDim, thread);

  OutputTiles<kHeads> acc = {};
  RunningSoftmax state;
#pragma unroll 1
  for (int slot = slot0; slot - thread / kRowThreads < slots.end; slot += kWgmmaTileRows) {
    store_keys(shared, raw, thread);
    device::fence_for_async_proxy();
    __syncthreads();  // The tile is there.
    load_raw(problem, slots, slot + kWgmmaTileRows, next_row, thread, raw);
    next_row = row_in_slot(slots, slot + 2 * kWgmmaTileRows);
    score_rows(shared, warpgroup, thread);
    __syncthreads();  // Both halves of the scores are there.
    softmax_rows(shared, scale_log2, thread, state);
    device::fence_for_async_proxy();
    __syncthreads();  // The weights are there.
    value_rows<kHeads>(shared, warpgroup, thread, acc);
    __syncthreads();  // The tile may be overwritten.
  }

  constexpr int kLanes = kWgmmaThreads / kHeads;
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
  store_rows<kHeads>(shared, acc, warpgroup, thread,
                     partials.out + (split * num_token_heads + first_token_head) * kKvHeadDim);
}

template <int kHeads>
cudaError_t launch_sparse_mla_wgmma(const SparseMlaProblem& problem, int num_splits,
                                    cudaStream_t stream) {
  constexpr int kBytes = static_cast<int>(sizeof(WgmmaShared<kHeads>)) + 1024;
  const cudaError_t error = cudaFuncSetAttribute(
      sparse_mla_wgmma_kernel<kHeads>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const dim3 grid(static_cast<unsigned>(num_splits),
                  static_cast<unsigned>(problem.shape.num_heads / kHeads),
                  static_cast<unsigned>(problem.shape.num_tokens));
  sparse_mla_wgmma_kernel<kHeads><<<grid, kWgmmaThreads, kBytes, stream>>>(
      problem, problem.softmax_scale * 1.4426950408889634F,
      sparse_mla_partials(problem, num_splits));
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels::detail
