// Device entry points of kernels/attention. Each enqueues on `stream` and returns the first CUDA
// error.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention/sparse_mla.h"

namespace fulcrum::kernels {

// Row loop: a launch over the window slots, one over the compressed slots, one that merges and adds
// the sink. Workspace for two splits.
cudaError_t sparse_mla_row_loop(const SparseMlaProblem& problem, cudaStream_t stream);

// Tensor-core split-K. cudaErrorInvalidValue when the plan does not fit the shape or the device.
cudaError_t sparse_mla_split_k(const SparseMlaProblem& problem, const SparseMlaPlan& plan,
                               cudaStream_t stream);

// The same with Hopper's warpgroup products; uses no workspace. cudaErrorInvalidValue when the plan
// does not fit the shape, cudaErrorNoKernelImageForDevice on any device but compute capability 9.0.
cudaError_t sparse_mla_split_k_sm90(const SparseMlaProblem& problem, const SparseMlaPlan& plan,
                                    cudaStream_t stream);

// Plans for the current device.
cudaError_t plan_sparse_mla_for_device(const SparseMlaShape& shape, SparseMlaPlan* plan);
cudaError_t plan_sparse_mla_sm90_for_device(const SparseMlaShape& shape, SparseMlaPlan* plan);

namespace detail {

// Partial results of one split: normalised outputs [split, tokens, heads, 512] followed by base-2
// log-sum-exps [split, tokens, heads]; an empty split has -inf and undefined outputs.
struct SparseMlaPartials {
  float* out = nullptr;
  float* log2_sum = nullptr;
};

inline SparseMlaPartials sparse_mla_partials(const SparseMlaProblem& problem, int num_splits) {
  const std::int64_t heads = std::int64_t{problem.shape.num_tokens} * problem.shape.num_heads;
  return {problem.workspace, problem.workspace + heads * kKvHeadDim * num_splits};
}

cudaError_t sparse_mla_combine(const SparseMlaProblem& problem, int num_splits,
                               cudaStream_t stream);

template <int kHeadTiles>
cudaError_t launch_sparse_mla_split_k(const SparseMlaProblem& problem, int num_splits,
                                      cudaStream_t stream);

template <int kHeads>
cudaError_t launch_sparse_mla_wgmma(const SparseMlaProblem& problem, int num_splits,
                                    cudaStream_t stream);

extern template cudaError_t launch_sparse_mla_wgmma<16>(const SparseMlaProblem&, int, cudaStream_t);
extern template cudaError_t launch_sparse_mla_wgmma<64>(const SparseMlaProblem&, int, cudaStream_t);
extern template cudaError_t launch_sparse_mla_split_k<1>(const SparseMlaProblem&, int,
                                                         cudaStream_t);
extern template cudaError_t launch_sparse_mla_split_k<4>(const SparseMlaProblem&, int,
                                                         cudaStream_t);

}  // namespace detail
}  // namespace fulcrum::kernels
