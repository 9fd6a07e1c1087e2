// Device entry points of kernels/elementwise. Each enqueues on `stream` and returns the first CUDA
// error; cudaErrorInvalidValue for a shape outside the bounds stated with the problem.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/elementwise/elementwise.h"

namespace fulcrum::kernels {

cudaError_t rms_norm(const RmsNormProblem& problem, cudaStream_t stream);
cudaError_t query_norm_rope(const QueryNormRopeProblem& problem, cudaStream_t stream);
cudaError_t inverse_rope(const InverseRopeProblem& problem, cudaStream_t stream);
cudaError_t kv_store(const KvStoreProblem& problem, cudaStream_t stream);
cudaError_t group_quantize(const GroupQuantizeProblem& problem, cudaStream_t stream);
cudaError_t swiglu(const SwigluProblem& problem, cudaStream_t stream);
cudaError_t stream_read(const StreamProblem& problem, cudaStream_t stream);
cudaError_t stream_copy(const StreamProblem& problem, cudaStream_t stream);

}  // namespace fulcrum::kernels
