// The loop over tiles of sparse_mla_wgmma.cuh, and its launch.
#pragma once

#include "kernels/attention/sm_90/sparse_mla_wgmma.cuh"

namespace fulcrum::kernels::detail {

template <int kHeads>
__global__ void __launch_bounds__(kWgmmaThreads, kHeads == 64 ? 1 : 2)
    sparse_mla_wgmma_kernel(SparseMlaProblem problem, float scale_log2) {
  extern __shared__ unsigned char shared_bytes[];
  // The swizzle needs 1024-byte tiles; dynamic shared memory promises 16. An offset, not a rounded
  // address: the compiler must still see that this is shared memory.
  auto& shared = *reinterpret_cast<WgmmaShared<kHeads>*>(
      shared_bytes + (-device::shared_address(shared_bytes) & 1023U));
  const int thread = static_cast<int>(threadIdx.x);
  // The same in all lanes, and known to be: descriptors then live in uniform registers.
  const int warpgroup = __shfl_sync(0xffffffffU, thread / 128, 0);
  const int num_splits = static_cast<int>(gridDim.x);
  const int split = static_cast<int>(blockIdx.x);
  const std::int64_t token = blockIdx.z;
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
    shared.inverse[head] = sum > 0.0F ? 1.0F / sum : 0.0F;
    shared.log2_sum[head] = sum > 0.0F ? state.base + log2f(sum) : -INFINITY;
  }
  __syncthreads();
  static_assert(sizeof(float) * kHeads * WgmmaShared<kHeads>::kOutputPitch <=
                sizeof(shared.keys) + sizeof(shared.query) + sizeof(shared.weights));
  keep_outputs<kHeads>(shared, acc, warpgroup, thread);
  cooperative_groups::this_cluster().sync();
  merge_splits<kHeads>(shared, problem.sink + kHeads * blockIdx.y,
                       problem.out + first_token_head * kKvHeadDim, thread);
  cooperative_groups::this_cluster().sync();  // Others may still read this block's outputs.
}

template <int kHeads>
cudaError_t launch_sparse_mla_wgmma(const SparseMlaProblem& problem, int num_splits,
                                    cudaStream_t stream) {
  constexpr int kBytes = static_cast<int>(sizeof(WgmmaShared<kHeads>)) + 1024;
  const cudaError_t error = cudaFuncSetAttribute(
      sparse_mla_wgmma_kernel<kHeads>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {.x = static_cast<unsigned>(num_splits), .y = 1, .z = 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(num_splits),
                        static_cast<unsigned>(problem.shape.num_heads / kHeads),
                        static_cast<unsigned>(problem.shape.num_tokens));
  config.blockDim = dim3(kWgmmaThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, sparse_mla_wgmma_kernel<kHeads>, problem,
                            problem.softmax_scale * 1.4426950408889634F);
}

}  // namespace fulcrum::kernels::detail
