#include "kernels/head/head_reference.h"

#include <cmath>

#include "kernels/common/parallel.h"

namespace fulcrum::kernels {

HeadGemvReference head_gemv_reference(const HeadGemvProblem& problem) {
  const std::size_t size = static_cast<std::size_t>(problem.num_tokens) * problem.num_rows;
  HeadGemvReference result{std::vector<double>(size), std::vector<double>(size)};
  parallel_for(problem.num_rows, [&](std::int64_t row) {
    const std::uint16_t* weight = problem.weight + row * problem.depth;
    for (std::int64_t token = 0; token < problem.num_tokens; ++token) {
      const std::uint16_t* x = problem.x + token * problem.depth;
      double sum = 0.0;
      double magnitude = 0.0;
      for (int k = 0; k < problem.depth; ++k) {
        const double product = static_cast<double>(decode_bf16(weight[k])) * decode_bf16(x[k]);
        sum += product;
        magnitude += std::fabs(product);
      }
      result.out[token * problem.num_rows + row] = sum;
      result.magnitude[token * problem.num_rows + row] = magnitude;
    }
  });
  return result;
}

std::vector<double> sampling_scores_reference(const SamplingProblem& problem) {
  std::vector<double> scores(static_cast<std::size_t>(problem.num_tokens) * problem.vocab);
  parallel_for(problem.num_tokens, [&](std::int64_t token) {
    const double temperature = problem.temperatures == nullptr ? 0.0 : problem.temperatures[token];
    for (int i = 0; i < problem.vocab; ++i) {
      double score = problem.logits[token * problem.vocab + i];
      if (temperature > 0.0) {
        const PhiloxWords words =
            philox(problem.seed,
                   static_cast<std::uint64_t>(token) << 32 | static_cast<unsigned>(i / 4 * 4),
                   problem.step);
        const double u = uniform_open(words.word[i % 4]);
        score = score / temperature - std::log(-std::log(u));
      }
      scores[token * problem.vocab + i] = score;
    }
  });
  return scores;
}

}  // namespace fulcrum::kernels
