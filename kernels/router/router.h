// Expert choice of one token from its gate logits: score = sqrt(softplus(logit)); the top_k largest
// score + bias are chosen (the bias steers the choice only), or, in hash layers, the ids listed for
// the token; weight = score / sum of the chosen scores x routed_scale.
#pragma once

#include <cstdint>

#include "kernels/common/claim.h"

namespace fulcrum::kernels {

inline constexpr int kMaxRouterTopK = 8;
inline constexpr int kMaxRouterExperts = 512;

struct RouterProblem {
  std::int32_t num_tokens = 0;
  std::int32_t num_experts = 0;  // 128, 256, 384 or 512 with a bias; any in hash layers
  std::int32_t top_k = 0;        // <= 8
  float routed_scale = 1.5F;
  const float* logits = nullptr;            // [tokens, experts]
  const float* bias = nullptr;              // [experts]; null in hash layers
  const std::int32_t* token_ids = nullptr;  // [tokens]; hash layers only
  const std::int64_t* expert_of_token =
      nullptr;  // [vocab, top_k], as in the checkpoint; hash layers only
  std::int32_t* experts =
      nullptr;               // [tokens, top_k], by falling score + bias; a tie goes to the lower id
  float* weights = nullptr;  // [tokens, top_k]
};

// Hash layers read the top_k logits they need only, and their table row.
Claim router_claim(std::int32_t num_tokens, std::int32_t num_experts, std::int32_t top_k,
                   bool hash);

}  // namespace fulcrum::kernels
