#include "kernels/gemm/fp8_block_gemm_reference.h"

#include <array>
#include <cmath>
#include <functional>

#include "kernels/common/formats.h"
#include "kernels/common/parallel.h"

namespace fulcrum::kernels {
namespace {

// `x_value(i, c)` is element c of row i as double; `decode_row(r, out)` writes weight row r.
GemmReference multiply(int m, int n, int k, const std::vector<double>& x,
                       const std::function<void(int row, double* out)>& decode_row) {
  GemmReference result;
  const auto size = static_cast<std::size_t>(m) * static_cast<std::size_t>(n);
  result.y.resize(size);
  result.magnitude.resize(size);
  parallel_for(n, [&](std::int64_t row) {
    std::vector<double> w(static_cast<std::size_t>(k));
    decode_row(static_cast<int>(row), w.data());
    for (int i = 0; i < m; ++i) {
      const double* xi = x.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(k);
      double sum = 0;
      double magnitude = 0;
      for (int c = 0; c < k; ++c) {
        const double product = xi[c] * w[static_cast<std::size_t>(c)];
        sum += product;
        magnitude += std::abs(product);
      }
      const std::size_t at =
          static_cast<std::size_t>(i) * static_cast<std::size_t>(n) + static_cast<std::size_t>(row);
      result.y[at] = sum;
      result.magnitude[at] = magnitude;
    }
  });
  return result;
}

const std::array<double, 256>& e4m3_table() {
  static const std::array<double, 256> table = [] {
    std::array<double, 256> values{};
    for (int code = 0; code < 256; ++code) {
      values[static_cast<std::size_t>(code)] = decode_e4m3(static_cast<std::uint8_t>(code));
    }
    return values;
  }();
  return table;
}

}  // namespace

GemmReference fp8_block_gemm_reference(std::span<const std::uint8_t> x,
                                       std::span<const float> x_scale,
                                       std::span<const std::uint8_t> weight,
                                       std::span<const float> weight_scale, int m, int n, int k) {
  const auto& table = e4m3_table();
  const std::size_t columns = static_cast<std::size_t>(k);
  const std::size_t groups = columns / 128;
  std::vector<double> decoded(static_cast<std::size_t>(m) * columns);
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) {
    for (std::size_t c = 0; c < columns; ++c) {
      decoded[i * columns + c] = table[x[i * columns + c]] * x_scale[i * groups + c / 128];
    }
  }
  return multiply(m, n, k, decoded, [&](int row, double* out) {
    const auto r = static_cast<std::size_t>(row);
    for (std::size_t c = 0; c < columns; ++c) {
      out[c] = table[weight[r * columns + c]] * weight_scale[r / 128 * groups + c / 128];
    }
  });
}

GemmReference fp8_tensor_gemm_reference(std::span<const std::uint8_t> x, float x_scale,
                                        std::span<const std::uint8_t> weight, float weight_scale,
                                        int m, int n, int k) {
  const auto& table = e4m3_table();
  const std::size_t columns = static_cast<std::size_t>(k);
  std::vector<double> decoded(static_cast<std::size_t>(m) * columns);
  for (std::size_t i = 0; i < decoded.size(); ++i) decoded[i] = table[x[i]] * x_scale;
  return multiply(m, n, k, decoded, [&](int row, double* out) {
    const auto r = static_cast<std::size_t>(row);
    for (std::size_t c = 0; c < columns; ++c) {
      out[c] = table[weight[r * columns + c]] * weight_scale;
    }
  });
}

GemmReference bf16_gemm_reference(std::span<const std::uint16_t> x,
                                  std::span<const std::uint16_t> weight, int m, int n, int k) {
  const std::size_t columns = static_cast<std::size_t>(k);
  std::vector<double> decoded(static_cast<std::size_t>(m) * columns);
  for (std::size_t i = 0; i < decoded.size(); ++i) decoded[i] = decode_bf16(x[i]);
  return multiply(m, n, k, decoded, [&](int row, double* out) {
    const auto r = static_cast<std::size_t>(row);
    for (std::size_t c = 0; c < columns; ++c) out[c] = decode_bf16(weight[r * columns + c]);
  });
}

}  // namespace fulcrum::kernels
