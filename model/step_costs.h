// Priced steps for a simulation, cached by batch and context.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/deployment.h"
#include "model/price.h"

namespace fulcrum {

/// Times of the steps a scheduler issues. Contexts are rounded to the middle of a bucket of 128
/// tokens, prefill tokens up to multiples of 32; not safe to share between threads.
class StepCosts {
 public:
  explicit StepCosts(const Deployment& deployment);

  /// One decode (or verify, draft passes included) step of `requests` at this mean context.
  double decode_seconds(int requests, double mean_context);
  /// One prefill forward of `tokens` tokens in all whose mean context is `mean_context`.
  double prefill_seconds(double tokens, double mean_context);
  /// Prefill tokens and decoding requests in one forward: dense work once over all tokens, the
  /// attention of the decoding requests added. Leaves out that their dense attention part is then
  /// counted twice, in proportion to their share of the tokens.
  double mixed_seconds(double prefill_tokens, double prefill_context, int requests,
                       double mean_context);

 private:
  static constexpr double kContextBucket = 128.0;
  static constexpr double kTokenBucket = 32.0;
  struct Decode {
    double seconds = 0.0;
    double attention_seconds = 0.0;
  };
  const Decode& decode(int requests, double mean_context);

  StepPricer pricer_;
  StepPrice price_;
  double tokens_per_request_;
  std::vector<std::vector<Decode>> decode_;  ///< [requests][context bucket]
  std::unordered_map<std::uint64_t, double> prefill_;
};

}  // namespace fulcrum
