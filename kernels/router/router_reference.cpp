#include "kernels/router/router_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fulcrum::kernels {

RouterReference router_reference(const RouterProblem& problem) {
  const int experts = problem.num_experts;
  const int top_k = problem.top_k;
  RouterReference result;
  result.scores.resize(static_cast<std::size_t>(problem.num_tokens) * experts);
  for (std::int64_t token = 0; token < problem.num_tokens; ++token) {
    double* scores = result.scores.data() + token * experts;
    for (int e = 0; e < experts; ++e) {
      scores[e] =
          std::sqrt(std::log1p(std::exp(static_cast<double>(problem.logits[token * experts + e]))));
    }
    std::vector<std::int32_t> order(experts);
    double gap = std::numeric_limits<double>::infinity();
    if (problem.bias == nullptr) {
      const std::int64_t row = problem.token_ids[token];
      for (int r = 0; r < top_k; ++r) {
        order[r] = static_cast<std::int32_t>(problem.expert_of_token[row * top_k + r]);
      }
    } else {
      std::iota(order.begin(), order.end(), 0);
      const auto biased = [&](std::int32_t e) { return scores[e] + problem.bias[e]; };
      std::ranges::stable_sort(
          order, [&](std::int32_t a, std::int32_t b) { return biased(a) > biased(b); });
      for (int r = 0; r < top_k && r + 1 < experts; ++r) {
        gap = std::min(gap, biased(order[r]) - biased(order[r + 1]));
      }
    }
    double sum = 0.0;
    for (int r = 0; r < top_k; ++r) sum += scores[order[r]];
    for (int r = 0; r < top_k; ++r) {
      result.experts.push_back(order[r]);
      result.weights.push_back(scores[order[r]] / sum * problem.routed_scale);
    }
    result.gaps.push_back(gap);
  }
  return result;
}

}  // namespace fulcrum::kernels
