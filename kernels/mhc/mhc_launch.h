// Device entry points of kernels/mhc. Each enqueues on `stream` and returns the first CUDA error;
// cudaErrorInvalidValue for a shape outside the bounds stated with the problem.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/mhc/mhc.h"

namespace fulcrum::kernels {

cudaError_t mhc_pre(const MhcPreProblem& problem, cudaStream_t stream);
cudaError_t mhc_post(const MhcPostProblem& problem, cudaStream_t stream);

}  // namespace fulcrum::kernels
