#include "kernels/moe/moe_reference.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/formats.h"
#include "kernels/common/parallel.h"

namespace fulcrum::kernels {
namespace {

// One matrix of one expert: rows of `columns` E2M1 codes with their scales.
struct Fp4Matrix {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
  double global;
  std::size_t columns;
  Fp4Format format;

  std::vector<double> row(std::size_t index) const {
    const std::size_t group = static_cast<std::size_t>(fp4_group(format));
    const std::uint8_t* row_codes = codes + index * columns / 2;
    const std::uint8_t* row_scales = scales + index * columns / group;
    std::vector<double> values(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      const std::uint8_t byte = row_codes[c / 2];
      const auto code = static_cast<std::uint8_t>(c % 2 == 0 ? byte & 15 : byte >> 4);
      const std::uint8_t scale_code = row_scales[c / group];
      const double scale =
          format == Fp4Format::kMxfp4 ? decode_e8m0(scale_code) : decode_e4m3(scale_code);
      values[c] = decode_e2m1(code) * scale * global;
    }
    return values;
  }
};

double dot(const std::vector<double>& a, const double* b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double swiglu(double gate, double up, double limit) {
  const double g = std::min(gate, limit);
  const double u = std::clamp(up, -limit, limit);
  return g / (1 + std::exp(-g)) * u;
}

}  // namespace

MoeReference moe_reference(const MoeReferenceInputs& in) {
  const auto tokens = static_cast<std::size_t>(in.shape.tokens);
  const auto hidden = static_cast<std::size_t>(in.shape.hidden);
  const auto width = static_cast<std::size_t>(in.shape.width);
  const auto top_k = static_cast<std::size_t>(in.shape.top_k);
  const auto group = static_cast<std::size_t>(fp4_group(in.weights.format));
  const auto matrix = [&](auto codes, auto scales, auto globals, std::size_t expert,
                          std::size_t rows, std::size_t columns) {
    return Fp4Matrix{.codes = codes.data() + expert * rows * columns / 2,
                     .scales = scales.data() + expert * rows * columns / group,
                     .global = in.weights.format == Fp4Format::kNvfp4
                                   ? static_cast<double>(globals[expert])
                                   : 1.0,
                     .columns = columns,
                     .format = in.weights.format};
  };
  std::vector<double> x(tokens * hidden);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = decode_bf16(in.x[i]);

  // Slots of each expert.
  std::vector<std::vector<std::size_t>> slots(static_cast<std::size_t>(in.shape.experts));
  for (std::size_t slot = 0; slot < tokens * top_k; ++slot) {
    slots[static_cast<std::size_t>(in.expert_ids[slot])].push_back(slot);
  }
  std::vector<double> activation(tokens * top_k * width);
  parallel_for(in.shape.experts * static_cast<std::int64_t>(width), [&](std::int64_t index) {
    const std::size_t expert = static_cast<std::size_t>(index) / width;
    const std::size_t column = static_cast<std::size_t>(index) % width;
    if (slots[expert].empty()) return;
    const Fp4Matrix weights = matrix(in.weights.gate_up, in.weights.gate_up_scale,
                                     in.weights.gate_up_global, expert, 2 * width, hidden);
    const std::vector<double> gate = weights.row(column);
    const std::vector<double> up = weights.row(width + column);
    for (const std::size_t slot : slots[expert]) {
      const double* token = x.data() + slot / top_k * hidden;
      activation[slot * width + column] = swiglu(dot(gate, token), dot(up, token), in.swiglu_limit);
    }
  });
  MoeReference result;
  result.out.resize(tokens * hidden);
  result.magnitude.resize(tokens * hidden);
  parallel_for(in.shape.hidden, [&](std::int64_t index) {
    const auto row = static_cast<std::size_t>(index);
    for (std::size_t expert = 0; expert < slots.size(); ++expert) {
      if (slots[expert].empty()) continue;
      const std::vector<double> weights = matrix(in.weights.down, in.weights.down_scale,
                                                 in.weights.down_global, expert, hidden, width)
                                              .row(row);
      for (const std::size_t slot : slots[expert]) {
        const double* h = activation.data() + slot * width;
        double sum = 0;
        double magnitude = 0;
        for (std::size_t c = 0; c < width; ++c) {
          sum += weights[c] * h[c];
          magnitude += std::abs(weights[c] * h[c]);
        }
        const double weight = in.expert_weights[slot];
        result.out[slot / top_k * hidden + row] += weight * sum;
        result.magnitude[slot / top_k * hidden + row] += std::abs(weight) * magnitude;
      }
    }
  });
  return result;
}

}  // namespace fulcrum::kernels
