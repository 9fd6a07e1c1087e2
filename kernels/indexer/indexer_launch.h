// Device entry points of kernels/indexer. Each enqueues on `stream` and returns the first CUDA
// error; cudaErrorInvalidValue for a shape outside the bounds stated with the problem.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/indexer/compressor.h"
#include "kernels/indexer/indexer.h"

namespace fulcrum::kernels {

cudaError_t index_query(const IndexQueryProblem& problem, cudaStream_t stream);
cudaError_t index_logits(const IndexLogitsProblem& problem, cudaStream_t stream);
// The same on Hopper's FP8 warpgroup instructions (sm_90a); cudaErrorNoKernelImageForDevice
// on any other architecture.
cudaError_t index_logits_sm90(const IndexLogitsProblem& problem, cudaStream_t stream);
cudaError_t top_k(const TopKProblem& problem, cudaStream_t stream);
cudaError_t compress(const CompressorProblem& problem, cudaStream_t stream);

}  // namespace fulcrum::kernels
