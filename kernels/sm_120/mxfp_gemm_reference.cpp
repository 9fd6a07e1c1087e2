#include "kernels/sm_120/mxfp_gemm_reference.h"

#include <cmath>

#include "kernels/common/formats.h"
#include "kernels/common/parallel.h"

namespace fulcrum::kernels {

GemmReference mxfp_gemm_reference(std::span<const std::uint8_t> x,
                                  std::span<const std::uint8_t> x_scale,
                                  std::span<const std::uint8_t> weight,
                                  std::span<const std::uint8_t> weight_scale, int m, int n, int k) {
  const auto tokens = static_cast<std::size_t>(m);
  const auto rows = static_cast<std::size_t>(n);
  const auto columns = static_cast<std::size_t>(k);
  GemmReference result;
  result.y.resize(tokens * rows);
  result.magnitude.resize(tokens * rows);
  parallel_for(n, [&](std::int64_t index) {
    const auto row = static_cast<std::size_t>(index);
    for (std::size_t token = 0; token < tokens; ++token) {
      double sum = 0;
      double magnitude = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        const std::uint8_t byte = weight[(row * columns + c) / 2];
        const auto code = static_cast<std::uint8_t>(c % 2 == 0 ? byte & 15 : byte >> 4);
        const double w =
            static_cast<double>(decode_e2m1(code)) *
            static_cast<double>(decode_e8m0(weight_scale[row * columns / 32 + c / 32]));
        const double v = static_cast<double>(decode_e4m3(x[token * columns + c])) *
                         static_cast<double>(decode_e8m0(x_scale[token * columns / 32 + c / 32]));
        sum += w * v;
        magnitude += std::abs(w * v);
      }
      result.y[token * rows + row] = sum;
      result.magnitude[token * rows + row] = magnitude;
    }
  });
  return result;
}

}  // namespace fulcrum::kernels
