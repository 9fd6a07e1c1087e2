// Chooses the instantiation of the split-K kernel, and plans for the current device.
#include "kernels/attention/sparse_mla_split_k.cuh"

namespace fulcrum::kernels {

cudaError_t sparse_mla_split_k(const SparseMlaProblem& problem, const SparseMlaPlan& plan,
                               cudaStream_t stream) {
  static_assert(sizeof(detail::SplitKShared<1>) == sparse_mla_split_k_shared_bytes(16));
  static_assert(sizeof(detail::SplitKShared<4>) == sparse_mla_split_k_shared_bytes(64));
  if (problem.shape.num_tokens <= 0 || plan.num_splits <= 0 || plan.heads_per_block <= 0 ||
      problem.shape.num_heads % plan.heads_per_block != 0) {
    return cudaErrorInvalidValue;
  }
  cudaError_t error = cudaErrorInvalidValue;
  switch (plan.heads_per_block) {
    case 16:
      error = detail::launch_sparse_mla_split_k<1>(problem, plan.num_splits, stream);
      break;
    case 64:
      error = detail::launch_sparse_mla_split_k<4>(problem, plan.num_splits, stream);
      break;
    default:
      break;
  }
  if (error != cudaSuccess) return error;
  return detail::sparse_mla_combine(problem, plan.num_splits, stream);
}

cudaError_t sparse_mla_split_k_sm90(const SparseMlaProblem& problem, const SparseMlaPlan& plan,
                                    cudaStream_t stream) {
  if (problem.shape.num_tokens <= 0 || plan.num_splits <= 0 ||
      plan.num_splits > kSparseMlaSm90MaxSplits || plan.heads_per_block <= 0 ||
      problem.shape.num_heads % plan.heads_per_block != 0) {
    return cudaErrorInvalidValue;
  }
  if (plan.heads_per_block == 16) {
    return detail::launch_sparse_mla_wgmma<16>(problem, plan.num_splits, stream);
  }
  if (plan.heads_per_block == 64) {
    return detail::launch_sparse_mla_wgmma<64>(problem, plan.num_splits, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t plan_sparse_mla_sm90_for_device(const SparseMlaShape& shape, SparseMlaPlan* plan) {
  int device = 0;
  int num_sms = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) *plan = plan_sparse_mla_sm90(shape, num_sms);
  return error;
}

cudaError_t plan_sparse_mla_for_device(const SparseMlaShape& shape, SparseMlaPlan* plan) {
  int device = 0;
  int num_sms = 0;
  int per_block = 0;
  int per_sm = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  }
  if (error == cudaSuccess) *plan = plan_sparse_mla(shape, num_sms, per_block, per_sm);
  return error;
}

}  // namespace fulcrum::kernels
