// A discrete-event simulation of continuous batching on one replica (F17). Deterministic by seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/deployment.h"
#include "model/histogram.h"

namespace fulcrum {

struct TraceRequest {
  double arrival_seconds = 0.0;
  double input_tokens = 0.0;
  double output_tokens = 0.0;
};

enum class SchedulerPolicy {
  kPrefillFirst,  ///< SGLang: waiting prompts go first, in forwards of up to one chunk of tokens
  kMixed,         ///< vLLM: decodes first, the rest of the token budget is filled with prompts
};

struct Traffic {
  enum class Kind { kClosedLoop, kPoisson, kTrace };
  Kind kind = Kind::kClosedLoop;
  double concurrency = 1.0;          ///< closed loop: requests kept in flight
  double requests_per_second = 0.0;  ///< Poisson
  std::int64_t num_requests = 0;     ///< closed loop and Poisson: prompts in all
  double input_tokens = 1.0;         ///< mean
  double output_tokens = 1.0;        ///< mean
  LengthSpread lengths;
  std::span<const TraceRequest> trace;  ///< sorted by arrival
};

struct SimulationOptions {
  SchedulerPolicy policy = SchedulerPolicy::kPrefillFirst;
  std::uint64_t seed = 1;
  /// Part of each running request's remaining output that admission keeps free. 0.7 is SGLang's
  /// initial new_token_ratio; 0 admits whatever fits now, as vLLM does.
  double reserved_output_fraction = 0.7;
};

struct SimulationResult {
  std::int64_t offered = 0;
  std::int64_t completed = 0;
  std::int64_t rejected = 0;     ///< would never fit in the pool
  std::int64_t retractions = 0;  ///< thrown out for lack of memory and recomputed
  std::int64_t decode_steps = 0;
  std::int64_t prefill_steps = 0;
  double makespan_seconds = 0.0;
  double output_tokens = 0.0;
  double output_tokens_per_second = 0.0;  ///< over the makespan, ramp and drain included
  double requests_per_second = 0.0;       ///< the same
  /// Between the completions of whole rounds of requests, without ramp and drain; 0 when too few.
  double steady_output_tokens_per_second = 0.0;
  double mean_batch = 0.0;      ///< requests per decode step
  double mean_in_system = 0.0;  ///< time average of requests waiting or running
  double mean_end_to_end_seconds = 0.0;
  double pool_peak_fraction = 0.0;
  DurationHistogram ttft;
  DurationHistogram tpot;  ///< per request: (end to end - TTFT) / (output tokens - 1)
  DurationHistogram itl;   ///< between emissions; with drafts an emission holds several tokens
  DurationHistogram end_to_end;
  /// All time between first and last tokens over all tokens after the first.
  double tpot_by_tokens_seconds = 0.0;
};

/// One replica under `traffic`. Throws nothing: what cannot fit is counted as rejected.
SimulationResult simulate(const Deployment& deployment, const Traffic& traffic,
                          const SimulationOptions& options);

/// The policy an engine uses by default.
SchedulerPolicy default_policy(EngineKind engine);

}  // namespace fulcrum
