// y = x * weight^T for E4M3 operands with block scales: the dense projections of DeepSeek-V4
// checkpoints (weight_block_size [128,128], dynamic activations per token and 128 columns).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/claim.h"
#include "kernels/gemm/fp8_block_gemm_reference.h"

namespace fulcrum::kernels {

struct Fp8BlockGemmArgs {
  const std::uint8_t* x = nullptr;       // [m, k] E4M3, row-major, 16-byte aligned.
  const float* x_scale = nullptr;        // [m, k / 128].
  const std::uint8_t* weight = nullptr;  // [n, k] E4M3, row-major, 16-byte aligned.
  const void* weight_scale = nullptr;    // [ceil(n / 128), k / 128], float or E8M0 bytes.
  BlockScaleFormat weight_scale_format = BlockScaleFormat::kFloat;
  std::uint16_t* y = nullptr;  // [m, n] BF16.
  int m = 0;                   // >= 1.
  int n = 0;                   // A multiple of 16.
  int k = 0;                   // A multiple of 128.
  // Blocks that share one output tile along k, summed through distributed shared memory (sm_90 and
  // up): 1, 2, 4 or 8; 0 lets the launcher choose.
  int split_k = 0;
};

Claim fp8_block_gemm_claim(int m, int n, int k, BlockScaleFormat weight_scale_format);

// Bound on the error of an accumulated sum, relative to the sum of its absolute products. 2^-18
// where products are summed in binary32 (tensor cores truncate inside one instruction); 2^-11 for
// the FP8 warpgroup mma that sm_90 uses from m = 17 on, whose sums keep about 14 fractional bits.
double fp8_block_gemm_sum_error(int m, int compute_capability);

// cudaErrorInvalidValue for a shape outside the bounds above.
[[nodiscard]] cudaError_t launch_fp8_block_gemm(const Fp8BlockGemmArgs& args, cudaStream_t stream);

}  // namespace fulcrum::kernels
