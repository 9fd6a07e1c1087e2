// What a deployment does at given concurrencies: step, TPOT, TTFT and throughput under a client
// that keeps a fixed number of requests in flight (closed loop).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/closed_loop_regimes.h"
#include "model/deployment.h"
#include "model/interval.h"
#include "model/memory.h"
#include "model/price.h"

namespace fulcrum {

/// One line of a step's breakdown; the seconds of all lines sum to the step.
struct BreakdownLine {
  std::string op;  ///< e.g. "wqkv_a"; draft ops as "draft.wqkv_a"; "gap" for GPU idle time
  OpFamily family = OpFamily::kGap;
  std::string kernel;
  double count = 0.0;
  double seconds = 0.0;
  double share_fraction = 0.0;
  double floor_seconds = 0.0;
  Limiter limiter = Limiter::kHost;
  Basis basis = Basis::kAssumed;  ///< of the kernel's cost
};

struct PredictionPoint {
  double concurrency = 0.0;
  double effective_batch = 0.0;  ///< over all replicas
  BatchLimiter batch_limiter = BatchLimiter::kConcurrency;
  double accept_length = 1.0;
  Interval step_seconds;
  Interval tpot_seconds;  ///< (end to end - TTFT) / (output tokens - 1), prefill of others included
  Interval ttft_seconds;
  Interval output_tokens_per_second;           ///< all requests
  Interval output_tokens_per_second_per_user;  ///< 1 / TPOT
  double prefill_seconds = 0.0;                ///< of one request alone
  /// How the closed loop settles at this point, and what a finite run loses to its ends.
  ClosedLoopRegime regime = ClosedLoopRegime::kStaggered;
  double prompts_together = 1.0;
  double run_efficiency = 1.0;
  bool eager = false;
  std::vector<BreakdownLine> breakdown;
  MemoryLedger memory;
};

struct Prediction {
  std::string scenario;
  std::vector<PredictionPoint> points;
  std::vector<std::string> warnings;
};

/// Predicts at each concurrency of the workload.
Prediction predict(const Deployment& deployment);

/// Throughput part of a point, for callers that need no breakdown. `free_ops` and `no_gap` price
/// the Amdahl ceiling of replacing those kernels.
struct Throughput {
  double output_tokens_per_second = 0.0;
  double tpot_seconds = 0.0;
  double ttft_seconds = 0.0;
  double step_seconds = 0.0;
  double prefill_seconds = 0.0;  ///< of one prompt alone
  double prompt_seconds = 0.0;   ///< per prompt, as prompts share prefills in the loop
  double run_efficiency = 1.0;   ///< rate of a finite run over the steady rate, in the throughput
  ClosedLoopRegime regime = ClosedLoopRegime::kStaggered;
  double accept_length = 1.0;
  double log_sigma = 0.0;       ///< of throughput and TPOT
  double step_log_sigma = 0.0;  ///< of the step
  EffectiveBatch batch;
};
struct CeilingOptions {
  std::vector<OpId> free_ops;
  bool no_gap = false;
  bool accept_all_drafts_free = false;
  bool at_roofline = false;  ///< every launch takes its roofline floor and nothing else
};
Throughput closed_loop_throughput(const Deployment& deployment, double concurrency,
                                  const CeilingOptions& ceiling = {});

/// The same at many concurrencies and lengths of one deployment: keeps the bound kernels, the
/// memory ledger and what was priced before, so that a point costs about one decode step's
/// attention. Not safe to share between threads.
class ThroughputPricer {
 public:
  explicit ThroughputPricer(const Deployment& deployment, const CeilingOptions& ceiling = {});
  ~ThroughputPricer();
  ThroughputPricer(ThroughputPricer&&) noexcept;
  ThroughputPricer& operator=(ThroughputPricer&&) noexcept;

  /// At the deployment's own lengths, then at others (tokens; cached prefix as deployed).
  Throughput at(double concurrency);
  Throughput at(double concurrency, double input_tokens, double output_tokens);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fulcrum
