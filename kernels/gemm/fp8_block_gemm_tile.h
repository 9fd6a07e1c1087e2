// Large-m path of the block-FP8 GEMM: shared-memory tiles, both operands reused.
#pragma once

#include "kernels/gemm/fp8_block_gemm.h"

namespace fulcrum::kernels {

[[nodiscard]] cudaError_t launch_fp8_block_gemm_tile(const Fp8BlockGemmArgs& args,
                                                     cudaStream_t stream);

}  // namespace fulcrum::kernels
