#include "kernels/attention/sparse_mla_split_k_kernel.cuh"

namespace fulcrum::kernels::detail {
template cudaError_t launch_sparse_mla_split_k<1>(const SparseMlaProblem&, int, cudaStream_t);
}  // namespace fulcrum::kernels::detail
