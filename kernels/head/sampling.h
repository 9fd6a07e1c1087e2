// The next token of every sequence: the largest logit, or, at a positive temperature, a draw from
// softmax(logit / temperature) by the Gumbel trick: argmax(logit / temperature - log(-log(u))).
#pragma once

#include <cstdint>

#include "kernels/common/claim.h"
#include "kernels/common/formats.h"

namespace fulcrum::kernels {

struct SamplingProblem {
  std::int32_t num_tokens = 0;
  std::int32_t vocab = 0;               // multiple of 4
  const float* logits = nullptr;        // [tokens, vocab]
  const float* temperatures = nullptr;  // [tokens]; 0 = greedy; null = all greedy
  std::uint64_t seed = 0;
  std::uint64_t step = 0;          // draws of different steps are independent
  std::int32_t* tokens = nullptr;  // [tokens]; a tie goes to the lower index
  void* workspace = nullptr;       // sampling_workspace_bytes(...), 8-byte aligned
};

std::int64_t sampling_workspace_bytes(std::int32_t num_tokens, std::int32_t vocab);
Claim sampling_claim(std::int32_t num_tokens, std::int32_t vocab);

inline constexpr int kSamplingChunk = 4096;  // logits per block

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
struct PhiloxWords {
  std::uint32_t word[4];
};

FULCRUM_HOST_DEVICE inline PhiloxWords philox(std::uint64_t key, std::uint64_t counter_low,
                                              std::uint64_t counter_high) {
  PhiloxWords c = {
      {static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
       static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)}};
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * c.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * c.word[2];
    c = {{static_cast<std::uint32_t>(b >> 32) ^ c.word[1] ^ k0, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ c.word[3] ^ k1, static_cast<std::uint32_t>(a)}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

// Uniform in (0, 1), both ends excluded, exact in binary32.
FULCRUM_HOST_DEVICE inline float uniform_open(std::uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5F) * 0x1p-23F;
}

}  // namespace fulcrum::kernels
