// Few rows: the warps of a block cut the depth of the same 16 rows, so that there are blocks for
// every SM.
#include "kernels/head/head_gemv.cuh"

namespace fulcrum::kernels::detail {
template cudaError_t launch_head_gemv<1, 1, 8>(const HeadGemvProblem&, cudaStream_t);
template cudaError_t launch_head_gemv<2, 1, 8>(const HeadGemvProblem&, cudaStream_t);
template cudaError_t launch_head_gemv<4, 1, 8>(const HeadGemvProblem&, cudaStream_t);
template cudaError_t launch_head_gemv<8, 1, 8>(const HeadGemvProblem&, cudaStream_t);
}  // namespace fulcrum::kernels::detail
