#include "kernels/mhc/mhc_reference.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/formats.h"
#include "kernels/common/parallel.h"

namespace fulcrum::kernels {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Divides every line of four by its sum: a line is entries first, first + step, ... of the matrix.
void normalise(std::array<double, 16>& m, int line_step, int entry_step, double epsilon) {
  for (int line = 0; line < 4; ++line) {
    double sum = epsilon;
    for (int i = 0; i < 4; ++i) sum += m[line * line_step + i * entry_step];
    for (int i = 0; i < 4; ++i) m[line * line_step + i * entry_step] /= sum;
  }
}

}  // namespace

std::array<double, 16> sinkhorn_reference(std::array<double, 16> logits, int num_iterations,
                                          double epsilon) {
  std::array<double, 16> m = logits;
  for (int i = 0; i < 4; ++i) {
    const double largest = *std::max_element(m.begin() + 4 * i, m.begin() + 4 * i + 4);
    double sum = 0.0;
    for (int j = 0; j < 4; ++j) sum += std::exp(m[4 * i + j] - largest);
    for (int j = 0; j < 4; ++j) m[4 * i + j] = std::exp(m[4 * i + j] - largest) / sum + epsilon;
  }
  for (int iteration = 0; iteration < num_iterations; ++iteration) {
    if (iteration > 0) normalise(m, 4, 1, epsilon);
    normalise(m, 1, 4, epsilon);
  }
  return m;
}

MhcPreReference mhc_pre_reference(const MhcPreProblem& problem) {
  const std::int64_t hidden = problem.hidden;
  const std::int64_t columns = kMhcStreams * hidden;
  const std::size_t tokens = static_cast<std::size_t>(problem.num_tokens);
  MhcPreReference result;
  result.out.resize(tokens * hidden);
  result.out_magnitude.resize(tokens * hidden);
  result.post.resize(tokens * kMhcStreams);
  result.comb.resize(tokens * 16);
  parallel_for(problem.num_tokens, [&](std::int64_t token) {
    const std::uint16_t* x = problem.residual + token * columns;
    double squares = 0.0;
    std::array<double, kMhcMixes> mix{};
    for (std::int64_t c = 0; c < columns; ++c) {
      const double value = decode_bf16(x[c]);
      squares += value * value;
      for (int m = 0; m < kMhcMixes; ++m) mix[m] += value * problem.fn[m * columns + c];
    }
    const double inverse_rms =
        1.0 / std::sqrt(squares / static_cast<double>(columns) + problem.norm_epsilon);
    const auto logit = [&](int i, int of_scale) {
      return mix[i] * inverse_rms * problem.scale[of_scale] + problem.base[i];
    };
    std::array<double, 16> comb{};
    for (int i = 0; i < 16; ++i) comb[i] = logit(2 * kMhcStreams + i, 2);
    comb = sinkhorn_reference(comb, problem.num_iterations, problem.epsilon);
    std::copy(comb.begin(), comb.end(), result.comb.begin() + token * 16);
    std::array<double, kMhcStreams> pre{};
    for (int i = 0; i < kMhcStreams; ++i) {
      pre[i] = sigmoid(logit(i, 0)) + problem.epsilon;
      result.post[token * kMhcStreams + i] = 2.0 * sigmoid(logit(kMhcStreams + i, 1));
    }
    double* y = result.out.data() + token * hidden;
    double* magnitude = result.out_magnitude.data() + token * hidden;
    double y_squares = 0.0;
    for (std::int64_t d = 0; d < hidden; ++d) {
      for (int i = 0; i < kMhcStreams; ++i) {
        const double product = pre[i] * decode_bf16(x[i * hidden + d]);
        y[d] += product;
        magnitude[d] += std::fabs(product);
      }
      y_squares += y[d] * y[d];
    }
    const double scale =
        1.0 / std::sqrt(y_squares / static_cast<double>(hidden) + problem.norm_epsilon);
    for (std::int64_t d = 0; d < hidden; ++d) {
      const double factor = scale * decode_bf16(problem.norm_weight[d]);
      y[d] *= factor;
      magnitude[d] *= std::fabs(factor);
    }
  });
  return result;
}

MhcPostReference mhc_post_reference(const MhcPostProblem& problem) {
  const std::int64_t hidden = problem.hidden;
  const std::size_t size = static_cast<std::size_t>(problem.num_tokens) * kMhcStreams * hidden;
  MhcPostReference result{std::vector<double>(size), std::vector<double>(size)};
  parallel_for(problem.num_tokens, [&](std::int64_t token) {
    const std::uint16_t* x = problem.residual + token * kMhcStreams * hidden;
    for (int j = 0; j < kMhcStreams; ++j) {
      for (std::int64_t d = 0; d < hidden; ++d) {
        double sum = static_cast<double>(problem.post[token * kMhcStreams + j]) *
                     decode_bf16(problem.sublayer[token * hidden + d]);
        double magnitude = std::fabs(sum);
        for (int i = 0; i < kMhcStreams; ++i) {
          const double product = static_cast<double>(problem.comb[token * 16 + 4 * i + j]) *
                                 decode_bf16(x[i * hidden + d]);
          sum += product;
          magnitude += std::fabs(product);
        }
        const std::int64_t at = (token * kMhcStreams + j) * hidden + d;
        result.out[at] = sum;
        result.magnitude[at] = magnitude;
      }
    }
  });
  return result;
}

}  // namespace fulcrum::kernels
