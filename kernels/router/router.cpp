#include "kernels/router/router.h"

namespace fulcrum::kernels {

Claim router_claim(std::int32_t num_tokens, std::int32_t num_experts, std::int32_t top_k,
                   bool hash) {
  const double tokens = num_tokens;
  const double scored = hash ? top_k : num_experts;
  const double steering_bytes = hash ? tokens * (4.0 + 8.0 * top_k) : 4.0 * num_experts;
  // Exponential, logarithm, root and bias per score; sum, division and scale per choice.
  return {.bytes = tokens * (4.0 * scored + 8.0 * top_k) + steering_bytes,
          .flop = tokens * (4.0 * scored + 3.0 * top_k)};
}

}  // namespace fulcrum::kernels
