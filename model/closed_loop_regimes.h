// The two ways a closed loop settles, from the steps a simulation would issue (F14, F17).
#pragma once

#include "model/deployment.h"
#include "model/serving.h"
#include "model/step_costs.h"

namespace fulcrum {

/// Requests of spread lengths end at different times, so each prompt interrupts the others'
/// decoding. Ends that fall into one step are prefilled together: with s steps a request, b / s end
/// in a step, and a pass that has any prompt has lambda / (1 - exp(-lambda)) of them.
ClosedLoopResult staggered_closed_loop(const Deployment& deployment, StepCosts& costs,
                                       double concurrency);

/// Requests of one length without drafts start and end together: all prompts are prefilled one
/// after another, in passes of up to one chunk, and nobody is interrupted later. Early prompts wait
/// for the others after their first token.
ClosedLoopResult lockstep_closed_loop(const Deployment& deployment, StepCosts& costs,
                                      double concurrency);

}  // namespace fulcrum
