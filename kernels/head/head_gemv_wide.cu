// Many rows: every warp walks the whole depth of its own rows.
#include "kernels/head/head_gemv.cuh"

namespace fulcrum::kernels::detail {
template cudaError_t launch_head_gemv<1, 1, 1>(const HeadGemvProblem&, cudaStream_t);
template cudaError_t launch_head_gemv<2, 1, 1>(const HeadGemvProblem&, cudaStream_t);
}  // namespace fulcrum::kernels::detail
