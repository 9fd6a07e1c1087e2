#pragma once

#include <cuda_runtime_api.h>

#include "kernels/router/router.h"

namespace fulcrum::kernels {

// Enqueues on `stream`; cudaErrorInvalidValue for a shape outside the bounds of RouterProblem.
cudaError_t route(const RouterProblem& problem, cudaStream_t stream);

}  // namespace fulcrum::kernels
