// y = x * weight^T with the block-scaled tensor instruction of sm_120a: x in MXFP8 (E4M3, one E8M0
// scale per 32 columns), weight in MXFP4 (E2M1, one E8M0 scale per 32). What an MXFP8 x MXFP4
// expert GEMM of that architecture computes; this kernel is the instruction and its scale layout,
// not a tuned GEMM. Compiled only: no such device was at hand, so the harness checks it against the
// reference before it believes any time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/claim.h"

namespace fulcrum::kernels {

struct MxfpGemmArgs {
  const std::uint8_t* x = nullptr;             // [m, k] E4M3, 8-byte aligned.
  const std::uint8_t* x_scale = nullptr;       // [m, k / 32] E8M0.
  const std::uint8_t* weight = nullptr;        // [n, k / 2], even column in the low nibble.
  const std::uint8_t* weight_scale = nullptr;  // [n, k / 32] E8M0.
  std::uint16_t* y = nullptr;                  // [m, n] BF16.
  int m = 0;                                   // >= 1.
  int n = 0;                                   // A multiple of 64.
  int k = 0;                                   // A multiple of 32.
};

Claim mxfp_gemm_claim(int m, int n, int k);

// cudaErrorInvalidValue for a shape outside the bounds above; cudaErrorNoKernelImageForDevice off
// sm_120.
[[nodiscard]] cudaError_t launch_mxfp_gemm(const MxfpGemmArgs& args, cudaStream_t stream);

}  // namespace fulcrum::kernels
