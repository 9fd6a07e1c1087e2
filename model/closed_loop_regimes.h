// How a closed loop settles: requests in lockstep, drifting apart, or staggered (F14, F17).
#pragma once

#include <functional>
#include <string_view>

#include "model/serving.h"

namespace fulcrum {

enum class ClosedLoopRegime {
  kLockstep,   ///< requests of one length without drafts start and end together
  kDrifting,   ///< drafts (or spread lengths) pull them apart, but a short run stays clustered
  kStaggered,  ///< ends fall anywhere in the others' decoding
};
std::string_view name_of(ClosedLoopRegime regime);

struct LoopInput {
  double concurrency = 0.0;         ///< requests the client keeps in flight, this replica
  double batch = 0.0;               ///< decoded together, at least 1 and at most the concurrency
  double output_tokens = 0.0;       ///< mean per request
  double output_cv = 0.0;           ///< of the output length, from request to request
  double accept_length = 1.0;       ///< mean tokens per step and request
  double accept_variance = 0.0;     ///< of the tokens of one step
  double step_seconds = 0.0;        ///< decode step at `batch`
  double drain_step_seconds = 0.0;  ///< at half of it, for the end of a run
  double prompts = 0.0;             ///< sent in all; 0: a run without end
  double prompts_per_pass = 1.0;    ///< whole prompts that one prefill pass takes, at least 1
  bool mixed = false;               ///< prefill shares its passes with decoding (vLLM)
  /// Seconds that prefilling this many prompts back to back adds to the loop; called with whole
  /// numbers from 1.
  std::function<double(double)> prefill_seconds;
};

struct LoopResult {
  /// Latencies of the whole run; rates without its ramp and drain.
  ClosedLoopResult steady;
  ClosedLoopRegime regime = ClosedLoopRegime::kStaggered;
  double prompts_together = 1.0;  ///< mean of a prefill that has any
  double prompt_seconds = 0.0;    ///< prefill per prompt when so many share it
  double run_efficiency = 1.0;    ///< rate of the finite run over the steady one
  double output_tokens_per_second() const {
    return steady.output_tokens_per_second * run_efficiency;
  }
};

/// X = run_efficiency / (prompt + steps step / batch); latencies by Little's law. Leaves out
/// retraction, and the queue of prompts that arrive while mixed passes prefill others.
LoopResult closed_loop_in_its_regime(const LoopInput& input);

/// Steps between the ends of requests that started together: standard deviation over requests of
/// the steps one needs. Zero without drafts and with one length.
double end_spread_steps(const LoopInput& input);

/// Mean tokens of context while decoding: a running request is met in proportion to its length, so
/// half of its mean output grows by 1 + cv^2 (mean residual life).
double mean_decode_context(double input_tokens, double output_tokens, double output_cv);

}  // namespace fulcrum
