#include "kernels/elementwise/elementwise_reference.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/formats.h"
#include "kernels/common/parallel.h"

namespace fulcrum::kernels {
namespace {

constexpr int kPairs = kKvRopeValues / 2;

double inverse_rms(const std::uint16_t* in, int dim, double epsilon) {
  double squares = 0.0;
  for (int d = 0; d < dim; ++d) {
    const double value = decode_bf16(in[d]);
    squares += value * value;
  }
  return 1.0 / std::sqrt(squares / dim + epsilon);
}

void rotate(double* values, const RopeTable& rope, std::int64_t token, bool inverse) {
  const float* cos_sin = rope.cos_sin + std::int64_t{rope.positions[token]} * kPairs * 2;
  for (int p = 0; p < kPairs; ++p) {
    const double c = cos_sin[2 * p];
    const double s = inverse ? -cos_sin[2 * p + 1] : cos_sin[2 * p + 1];
    const double re = values[2 * p];
    const double im = values[2 * p + 1];
    values[2 * p] = re * c - im * s;
    values[2 * p + 1] = re * s + im * c;
  }
}

}  // namespace

std::vector<double> rms_norm_reference(const RmsNormProblem& problem) {
  std::vector<double> out(static_cast<std::size_t>(problem.num_rows) * problem.dim);
  parallel_for(problem.num_rows, [&](std::int64_t row) {
    const std::uint16_t* in = problem.in + row * problem.dim;
    const double scale = inverse_rms(in, problem.dim, problem.epsilon);
    for (int d = 0; d < problem.dim; ++d) {
      const double weight = problem.weight == nullptr ? 1.0 : decode_bf16(problem.weight[d]);
      out[row * problem.dim + d] = decode_bf16(in[d]) * scale * weight;
    }
  });
  return out;
}

std::vector<double> query_norm_rope_reference(const QueryNormRopeProblem& problem) {
  const std::int64_t heads = std::int64_t{problem.num_tokens} * problem.num_heads;
  std::vector<double> out(static_cast<std::size_t>(heads) * kKvHeadDim);
  parallel_for(heads, [&](std::int64_t head) {
    const std::uint16_t* in = problem.in + head * kKvHeadDim;
    double* values = out.data() + head * kKvHeadDim;
    const double scale = inverse_rms(in, kKvHeadDim, problem.epsilon);
    for (int d = 0; d < kKvHeadDim; ++d) values[d] = decode_bf16(in[d]) * scale;
    rotate(values + kKvFp8Values, problem.rope, head / problem.num_heads, false);
  });
  return out;
}

std::vector<double> inverse_rope_reference(const InverseRopeProblem& problem) {
  const std::int64_t heads = std::int64_t{problem.num_tokens} * problem.num_heads;
  std::vector<double> out(static_cast<std::size_t>(heads) * kKvHeadDim);
  parallel_for(heads, [&](std::int64_t head) {
    double* values = out.data() + head * kKvHeadDim;
    for (int d = 0; d < kKvHeadDim; ++d)
      values[d] = decode_bf16(problem.heads[head * kKvHeadDim + d]);
    rotate(values + kKvFp8Values, problem.rope, head / problem.num_heads, true);
  });
  return out;
}

std::vector<double> kv_store_reference(const KvStoreProblem& problem) {
  std::vector<double> out(static_cast<std::size_t>(problem.num_tokens) * kKvHeadDim);
  parallel_for(problem.num_tokens, [&](std::int64_t token) {
    const std::uint16_t* in = problem.in + token * kKvHeadDim;
    double* values = out.data() + token * kKvHeadDim;
    const double scale = inverse_rms(in, kKvHeadDim, problem.epsilon);
    for (int d = 0; d < kKvHeadDim; ++d) {
      values[d] = decode_bf16(in[d]) * scale * decode_bf16(problem.weight[d]);
    }
    rotate(values + kKvFp8Values, problem.rope, token, false);
  });
  return out;
}

double kv_row_rounding_bound(int dim, double value, double group_largest) {
  const double magnitude = std::fabs(value);
  // Binary32 arithmetic before the rounding: a few 2^-23 of the value.
  const double arithmetic = magnitude * 0x1p-20;
  if (dim >= kKvFp8Values) return magnitude * 0x1p-8 + arithmetic;
  const double scale =
      std::exp2(std::ceil(std::log2(std::max(group_largest, 1e-4) / 448.0) - 1e-6));
  const double half_ulp = std::max(0x1p-4 * magnitude, 0x1p-10 * scale);
  return half_ulp + arithmetic;
}

void group_quantize_reference(const GroupQuantizeProblem& problem) {
  const std::int64_t groups = std::int64_t{problem.num_rows} * (problem.dim / kQuantizeGroup);
  parallel_for(groups, [&](std::int64_t group) {
    const std::uint16_t* in = problem.in + group * kQuantizeGroup;
    float largest = 1e-4F;
    for (int i = 0; i < kQuantizeGroup; ++i)
      largest = std::max(largest, std::fabs(decode_bf16(in[i])));
    float scale = largest / 448.0F;
    if (problem.scales_e8m0 != nullptr) {
      problem.scales_e8m0[group] = encode_e8m0_ceil(scale);
      scale = decode_e8m0(problem.scales_e8m0[group]);
    } else {
      problem.scales[group] = scale;
    }
    const float inverse = 1.0F / scale;
    for (int i = 0; i < kQuantizeGroup; ++i) {
      problem.codes[group * kQuantizeGroup + i] = encode_e4m3(decode_bf16(in[i]) * inverse);
    }
  });
}

std::vector<double> swiglu_reference(const SwigluProblem& problem) {
  std::vector<double> out(static_cast<std::size_t>(problem.num_rows) * problem.width);
  const double limit = problem.limit;
  parallel_for(problem.num_rows, [&](std::int64_t row) {
    const std::uint16_t* gate = problem.in + row * 2 * problem.width;
    const std::uint16_t* up = gate + problem.width;
    for (int i = 0; i < problem.width; ++i) {
      const double g = std::min<double>(decode_bf16(gate[i]), limit);
      const double u = std::clamp<double>(decode_bf16(up[i]), -limit, limit);
      out[row * problem.width + i] = g / (1.0 + std::exp(-g)) * u;
    }
  });
  return out;
}

}  // namespace fulcrum::kernels
