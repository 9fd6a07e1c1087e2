// Expected distinct experts of a launch (F8). Source: inclusion probabilities, facts formulas (b).
#pragma once

#include <cmath>

#include "model/laws/launches.h"

namespace fulcrum {

/// Distinct experts on this rank that `tokens` uniformly routed tokens touch:
/// U = E (1 - (1 - k/E)^T), with neighbours of one request repeating a choice at correlation rho.
inline double expected_distinct_experts(const MoeLaunch& launch) {
  const double pi = launch.top_k / launch.num_experts;
  const double requests = launch.tokens / launch.tokens_per_request;
  const double miss_one_request =
      (1.0 - pi) * std::pow(1.0 - pi * (1.0 - launch.neighbour_correlation),
                            launch.tokens_per_request - 1.0);
  return launch.local_experts * (1.0 - std::pow(miss_one_request, requests));
}

}  // namespace fulcrum
