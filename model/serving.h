// Closed-loop serving (F14): a client keeps N requests in flight; prefill is served first.
#pragma once

namespace fulcrum {

struct ClosedLoopInput {
  double concurrency = 0.0;      ///< requests the client keeps in flight, this replica
  double batch = 0.0;            ///< requests decoded together, <= concurrency
  double output_tokens = 0.0;    ///< per request
  double accept_length = 1.0;    ///< tokens per step and request
  double step_seconds = 0.0;     ///< decode step at `batch`
  double prefill_seconds = 0.0;  ///< one request's prompt
};

struct ClosedLoopResult {
  double requests_per_second = 0.0;
  double output_tokens_per_second = 0.0;
  double ttft_seconds = 0.0;
  double tpot_seconds = 0.0;
  double end_to_end_seconds = 0.0;
};

/// Decode steps of a request whose first token comes from prefill. With drafts the last step
/// overshoots by half a step on average.
double decode_steps(double output_tokens, double accept_length);

/// X = 1 / (prefill + steps * step / batch); latencies by Little's law. Leaves out chunked
/// prefill mixed into decode steps, length variance, ramp and drain.
ClosedLoopResult closed_loop(const ClosedLoopInput& input);

}  // namespace fulcrum
