#pragma once

#include <cstdint>
#include <vector>

#include "kernels/router/router.h"

namespace fulcrum::kernels {

struct RouterReference {
  std::vector<double> scores;         // [tokens, experts], sqrt(softplus(logit))
  std::vector<std::int32_t> experts;  // [tokens, top_k]
  std::vector<double> weights;        // [tokens, top_k]
  // [tokens]: the smallest gap between neighbours in the order of score + bias among the first
  // top_k + 1. Below the rounding of binary32 the order is not determined.
  std::vector<double> gaps;
};

// Double-precision routing over host pointers; outputs of `problem` are not written.
RouterReference router_reference(const RouterProblem& problem);

}  // namespace fulcrum::kernels
