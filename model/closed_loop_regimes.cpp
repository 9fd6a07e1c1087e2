#include "model/closed_loop_regimes.h"

#include <algorithm>
#include <cmath>

#include "model/memory.h"
#include "model/speculation.h"

namespace fulcrum {
namespace {

struct Loop {
  double per_replica = 1.0;
  double batch = 0.0;
  double context = 0.0;
  double prompt = 0.0;  ///< tokens to compute
  double accept = 1.0;
  double steps = 0.0;
  double step_seconds = 0.0;
};

Loop loop_at(const Deployment& deployment, StepCosts& costs, double concurrency) {
  const Workload& work = deployment.workload;
  Loop loop;
  loop.per_replica = std::max(1.0, concurrency / deployment.replicas());
  loop.context = work.input_tokens + work.output_tokens / 2.0;
  loop.batch = effective_batch(deployment, loop.per_replica, loop.context).requests;
  loop.prompt = work.input_tokens - work.cached_prefix_tokens;
  loop.accept = accept_length(deployment.speculation.acceptance);
  loop.steps = decode_steps(work.output_tokens, loop.accept);
  if (loop.batch >= 1.0) {
    loop.step_seconds = costs.decode_seconds(static_cast<int>(loop.batch), loop.context);
  }
  return loop;
}

/// Seconds of prefilling `prompts` prompts back to back, passes of up to one chunk.
double prefill_together(const Deployment& deployment, StepCosts& costs, double prompts,
                        double prompt_tokens) {
  const double cached = deployment.workload.cached_prefix_tokens;
  const double chunk = deployment.engine.chunked_prefill_tokens;
  const double total = prompts * prompt_tokens;
  double done = 0.0;
  double seconds = 0.0;
  while (done < total) {
    const double tokens = std::min(chunk, total - done);
    // Mean over the pass of where its tokens lie in their own prompts.
    const double place = prompt_tokens <= tokens ? prompt_tokens / 2.0
                                                 : std::fmod(done, prompt_tokens) + tokens / 2.0;
    seconds += costs.prefill_seconds(tokens, cached + std::min(place, prompt_tokens));
    done += tokens;
  }
  return seconds;
}

}  // namespace

ClosedLoopResult staggered_closed_loop(const Deployment& deployment, StepCosts& costs,
                                       double concurrency) {
  const Loop loop = loop_at(deployment, costs, concurrency);
  if (loop.batch < 1.0) return {};
  const double per_step = loop.steps > 0.0 ? loop.batch / loop.steps : loop.batch;
  const double together =
      std::clamp(per_step / -std::expm1(-per_step), 1.0, std::max(1.0, loop.batch));
  // Between whole numbers of prompts the mean cost is interpolated.
  const double below = std::floor(together);
  const double t = together - below;
  const double whole = prefill_together(deployment, costs, below, loop.prompt);
  const double next = prefill_together(deployment, costs, below + 1.0, loop.prompt);
  const double each = (whole * (1.0 - t) + next * t) / together;
  return closed_loop({.concurrency = loop.per_replica,
                      .batch = loop.batch,
                      .output_tokens = deployment.workload.output_tokens,
                      .accept_length = loop.accept,
                      .step_seconds = loop.step_seconds,
                      .prefill_seconds = each});
}

ClosedLoopResult lockstep_closed_loop(const Deployment& deployment, StepCosts& costs,
                                      double concurrency) {
  const Loop loop = loop_at(deployment, costs, concurrency);
  if (loop.batch < 1.0) return {};
  const double output = deployment.workload.output_tokens;
  const double prefill = prefill_together(deployment, costs, loop.batch, loop.prompt);
  const double cycle = prefill + loop.steps * loop.step_seconds;
  double first_tokens = 0.0;
  double passed = 0.0;
  const double per_pass =
      std::max(1.0, std::floor(deployment.engine.chunked_prefill_tokens / loop.prompt));
  for (double done = 0.0; done < loop.batch;) {
    const double group = std::min(per_pass, loop.batch - done);
    passed += prefill_together(deployment, costs, group, loop.prompt);
    first_tokens += group * passed;
    done += group;
  }
  ClosedLoopResult out;
  out.requests_per_second = loop.batch / cycle;
  out.output_tokens_per_second = out.requests_per_second * output;
  out.end_to_end_seconds = loop.per_replica / out.requests_per_second;
  const double wait = out.end_to_end_seconds - cycle;  // for a slot, where clients exceed them
  const double to_first = std::min(prefill, first_tokens / loop.batch);
  out.ttft_seconds = wait + to_first;
  out.tpot_seconds = (cycle - to_first) / std::max(1.0, output - 1.0);
  return out;
}

}  // namespace fulcrum
