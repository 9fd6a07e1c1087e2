#include "kernels/attention/sm_90/sparse_mla_wgmma_kernel.cuh"

namespace fulcrum::kernels::detail {
template cudaError_t launch_sparse_mla_wgmma<64>(const SparseMlaProblem&, int, cudaStream_t);
}  // namespace fulcrum::kernels::detail
