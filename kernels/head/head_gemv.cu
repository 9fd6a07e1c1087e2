#include "kernels/head/head_launch.h"

namespace fulcrum::kernels {

cudaError_t head_gemv(const HeadGemvProblem& problem, cudaStream_t stream) {
  constexpr int kDepthMultiple = 1024;  // eight warps of four steps of 32
  if (problem.num_tokens <= 0 || problem.num_rows <= 0 || problem.depth <= 0 ||
      problem.depth % kDepthMultiple != 0) {
    return cudaErrorInvalidValue;
  }
  // Below this many rows the wide form has less than about one block per SM of a large device.
  constexpr int kNarrowRows = 16384;
  const bool narrow = problem.num_rows <= kNarrowRows;
  if (problem.num_tokens <= 8) {
    return narrow ? detail::launch_head_gemv<1, 1, 8>(problem, stream)
                  : detail::launch_head_gemv<1, 1, 1>(problem, stream);
  }
  if (problem.num_tokens <= 16) {
    return narrow ? detail::launch_head_gemv<2, 1, 8>(problem, stream)
                  : detail::launch_head_gemv<2, 1, 1>(problem, stream);
  }
  if (problem.num_tokens <= 32) {
    return narrow ? detail::launch_head_gemv<4, 1, 8>(problem, stream)
                  : detail::launch_head_gemv_staged<4>(problem, stream);
  }
  return narrow ? detail::launch_head_gemv<8, 1, 8>(problem, stream)
                : detail::launch_head_gemv_staged<8>(problem, stream);
}

}  // namespace fulcrum::kernels
