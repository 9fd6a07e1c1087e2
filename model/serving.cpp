#include "model/serving.h"

#include <algorithm>

namespace fulcrum {

double decode_steps(double output_tokens, double accept_length) {
  const double after_first = std::max(0.0, output_tokens - 1.0);
  if (after_first == 0.0) return 0.0;
  return after_first / accept_length + (accept_length > 1.0 ? 0.5 : 0.0);
}

ClosedLoopResult closed_loop(const ClosedLoopInput& in) {
  const double steps = decode_steps(in.output_tokens, in.accept_length);
  ClosedLoopResult out;
  out.requests_per_second = 1.0 / (in.prefill_seconds + steps * in.step_seconds / in.batch);
  out.output_tokens_per_second = out.requests_per_second * in.output_tokens;
  const double queued = std::max(0.0, in.concurrency - in.batch);
  out.ttft_seconds = in.prefill_seconds + queued / out.requests_per_second;
  out.end_to_end_seconds = in.concurrency / out.requests_per_second;
  const double after_first = std::max(1.0, in.output_tokens - 1.0);
  out.tpot_seconds = std::max(0.0, out.end_to_end_seconds - out.ttft_seconds) / after_first;
  return out;
}

}  // namespace fulcrum
