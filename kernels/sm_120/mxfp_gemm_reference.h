// Double-precision reference of the MXFP8 x MXFP4 GEMM. No CUDA.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/gemm/fp8_block_gemm_reference.h"

namespace fulcrum::kernels {

// Layouts as in MxfpGemmArgs.
GemmReference mxfp_gemm_reference(std::span<const std::uint8_t> x,
                                  std::span<const std::uint8_t> x_scale,
                                  std::span<const std::uint8_t> weight,
                                  std::span<const std::uint8_t> weight_scale, int m, int n, int k);

}  // namespace fulcrum::kernels
