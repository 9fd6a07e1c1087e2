// Device entry points of kernels/head. Each enqueues on `stream` and returns the first CUDA error;
// cudaErrorInvalidValue for a shape outside the bounds stated with the problem.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/head/head_gemv.h"
#include "kernels/head/sampling.h"

namespace fulcrum::kernels {

cudaError_t head_gemv(const HeadGemvProblem& problem, cudaStream_t stream);
cudaError_t sample(const SamplingProblem& problem, cudaStream_t stream);

namespace detail {

// kSplitDepth warps of a block share 16 x kRowTiles rows and cut the depth; the other warps take
// more rows.
template <int kTokenTiles, int kRowTiles, int kSplitDepth>
cudaError_t launch_head_gemv(const HeadGemvProblem& problem, cudaStream_t stream);

// Tokens staged in shared memory.
template <int kTokenTiles>
cudaError_t launch_head_gemv_staged(const HeadGemvProblem& problem, cudaStream_t stream);

}  // namespace detail
}  // namespace fulcrum::kernels
