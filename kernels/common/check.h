// Turning CUDA error codes into exceptions that carry expression, code, text and place.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace fulcrum::kernels {

class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const char* expression, const char* file, int line);
  cudaError_t code() const { return code_; }
  // True when the context is lost: every later call in this process will fail too.
  bool sticky() const;

 private:
  cudaError_t code_;
};

// Throws CudaError unless `code` is cudaSuccess. A pending asynchronous error surfaces at the next
// synchronizing call; FULCRUM_CUDA_CHECK(cudaStreamSynchronize(s)) after a launch is what finds it.
void check_cuda(cudaError_t code, const char* expression, const char* file, int line);

}  // namespace fulcrum::kernels

#define FULCRUM_CUDA_CHECK(expression) \
  ::fulcrum::kernels::check_cuda((expression), #expression, __FILE__, __LINE__)
