// Small-m path of the block-FP8 GEMM: a block per (row tile, slice of k), everything in flight at
// once.
#pragma once

#include "kernels/gemm/fp8_block_gemm.h"

namespace fulcrum::kernels {

// How a launch cuts the problem; chosen by the dispatcher.
struct SlicePlan {
  int splits = 1;            // Blocks of a cluster along k: 1, 2, 4 or 8.
  int max_shared_bytes = 0;  // Per block, of the device.
};

// m <= kMaxTokens of the instantiation per block in z; cudaErrorInvalidValue if the plan does not
// fit.
[[nodiscard]] cudaError_t launch_fp8_slice_8(const Fp8BlockGemmArgs&, const SlicePlan&,
                                             cudaStream_t);
[[nodiscard]] cudaError_t launch_fp8_slice_16(const Fp8BlockGemmArgs&, const SlicePlan&,
                                              cudaStream_t);
[[nodiscard]] cudaError_t launch_fp8_slice_32(const Fp8BlockGemmArgs&, const SlicePlan&,
                                              cudaStream_t);
[[nodiscard]] cudaError_t launch_fp8_slice_64(const Fp8BlockGemmArgs&, const SlicePlan&,
                                              cudaStream_t);

// 64 tokens per block, sm_90 only (cudaErrorNoKernelImageForDevice elsewhere).
[[nodiscard]] cudaError_t launch_fp8_slice_wgmma(const Fp8BlockGemmArgs&, const SlicePlan&,
                                                 cudaStream_t);

}  // namespace fulcrum::kernels
