// The KV pool as a scheduler sees it.
#pragma once

#include <cmath>

#include "model/deployment.h"

namespace fulcrum {

/// Tokens of the pool in whole pages, and fixed bytes per running request as tokens.
struct ServingPool {
  double capacity_tokens = 0.0;
  double page_tokens = 1.0;
  double fixed_tokens = 0.0;
  double max_running = 0.0;

  double pages(double tokens) const {
    return std::ceil(tokens / page_tokens) * page_tokens + fixed_tokens;
  }
};

/// Of one replica; no slot where the weights leave no room.
ServingPool serving_pool(const Deployment& deployment);

}  // namespace fulcrum
