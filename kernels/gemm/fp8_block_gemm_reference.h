// Slow and obvious double-precision references of the GEMM kernels. No CUDA.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fulcrum::kernels {

enum class BlockScaleFormat { kFloat, kE8m0 };

struct GemmReference {
  std::vector<double> y;          // [m, n].
  std::vector<double> magnitude;  // [m, n]: sum of the absolute products.
};

// Scales already decoded to float: x_scale [m, k/128], weight_scale [ceil(n/128), k/128].
GemmReference fp8_block_gemm_reference(std::span<const std::uint8_t> x,
                                       std::span<const float> x_scale,
                                       std::span<const std::uint8_t> weight,
                                       std::span<const float> weight_scale, int m, int n, int k);

// One scale per tensor.
GemmReference fp8_tensor_gemm_reference(std::span<const std::uint8_t> x, float x_scale,
                                        std::span<const std::uint8_t> weight, float weight_scale,
                                        int m, int n, int k);

GemmReference bf16_gemm_reference(std::span<const std::uint16_t> x,
                                  std::span<const std::uint16_t> weight, int m, int n, int k);

}  // namespace fulcrum::kernels
