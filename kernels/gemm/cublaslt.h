// GEMMs of cuBLASLt beside our own, for comparison and for ops that an engine leaves to it. The
// library is loaded at run time: nothing here is needed to build or to run the rest.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/common/claim.h"

namespace fulcrum::kernels {

enum class CublasLtKind {
  kBf16,       // BF16 x BF16.
  kFp8Tensor,  // E4M3 x E4M3, one float scale per tensor.
  kFp8Block,   // E4M3 x E4M3, x scaled per 1 x 128, weight per 128 x 128, float scales.
};

struct CublasLtArgs {
  const void* x = nullptr;              // [m, k].
  const void* weight = nullptr;         // [n, k].
  std::uint16_t* y = nullptr;           // [m, n] BF16.
  const float* x_scale = nullptr;       // kFp8Tensor: 1; kFp8Block: [k / 128, m], m innermost.
  const float* weight_scale = nullptr;  // kFp8Tensor: 1; kFp8Block: [ceil(n/128), k/128].
};

// One problem with the algorithm that the library's heuristic ranks `algorithm`-th (0 is its
// choice), and a workspace of its own.
class CublasLtGemm {
 public:
  // Throws std::runtime_error: library missing, or no algorithm of that rank for this shape on this
  // device.
  CublasLtGemm(CublasLtKind kind, int m, int n, int k, int algorithm);
  ~CublasLtGemm();
  CublasLtGemm(const CublasLtGemm&) = delete;
  CublasLtGemm& operator=(const CublasLtGemm&) = delete;

  // Throws std::runtime_error with the cuBLAS status.
  void launch(const CublasLtArgs& args, cudaStream_t stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Why the library cannot be used here; empty when it can.
std::string cublaslt_absence();

Claim cublaslt_gemm_claim(CublasLtKind kind, int m, int n, int k);

}  // namespace fulcrum::kernels
