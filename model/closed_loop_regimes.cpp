#include "model/closed_loop_regimes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fulcrum {
namespace {

/// Between whole numbers of prompts the mean cost is interpolated.
double prefill_of(const LoopInput& in, double prompts) {
  const double below = std::floor(prompts);
  const double t = prompts - below;
  const double whole = in.prefill_seconds(below);
  return t > 0.0 ? whole * (1.0 - t) + in.prefill_seconds(below + 1.0) * t : whole;
}

/// One pass that prefills `prompts`, the decode step it carries included.
double pass_of(const LoopInput& in, double prompts) {
  return prefill_of(in, std::max(1.0, prompts)) + (in.mixed ? in.step_seconds : 0.0);
}

/// Mean time to the first token of `prompts` that wait together: each comes with its pass.
double first_token_seconds(const LoopInput& in, double prompts) {
  const double size = std::min(in.prompts_per_pass, prompts);
  const double full = std::floor(prompts / size);
  const double rest = prompts - full * size;
  const double pass = pass_of(in, size);
  double sum = size * pass * full * (full + 1.0) / 2.0;
  if (rest > 0.0) sum += rest * (full * pass + pass_of(in, rest));
  return sum / prompts;
}

/// Mean prompts of a prefill that has any, when `per_step` end in a step on average (Poisson).
double together_of(double per_step, double batch) {
  return std::clamp(per_step / -std::expm1(-per_step), 1.0, batch);
}

/// E[max] of one fresh request and `others` residual lives, in mean lives: the fresh one uniform
/// with `cv`, residuals uniform up to 1 + cv^2 (their mean is that of renewal theory).
double longest_left(double cv, double others) {
  const double half = std::sqrt(3.0) * cv;
  const double longest_residual = 1.0 + cv * cv;
  const double end = std::max(1.0 + half, longest_residual);
  constexpr int kSlices = 64;
  double sum = 0.0;
  for (int i = 0; i < kSlices; ++i) {
    const double x = (i + 0.5) / kSlices * end;
    const double fresh =
        half > 0.0 ? std::clamp((x - 1.0 + half) / (2.0 * half), 0.0, 1.0) : (x < 1.0 ? 0.0 : 1.0);
    sum += 1.0 - fresh * std::pow(std::min(1.0, x / longest_residual), others);
  }
  return sum * end / kSlices;
}

/// The end of a finite run: the last requests fall out one by one and nobody takes their place.
void end_the_run(const LoopInput& in, double steps, double spread, LoopResult& out) {
  if (in.prompts <= 0.0 || steps <= 0.0) return;
  const double rounds = in.prompts / in.batch;
  if (out.regime == ClosedLoopRegime::kLockstep && !in.mixed) {
    out.run_efficiency = rounds / std::ceil(rounds);
    return;
  }
  // Where requests stand when the last one is admitted: at their start if all are in phase, within
  // their residual lives if phases are uniform.
  const double uniform = steps / std::sqrt(12.0);
  const double drift = spread * std::sqrt(std::max(1.0, rounds));
  const double in_phase =
      out.regime == ClosedLoopRegime::kLockstep ? 1.0 : std::clamp(1.0 - drift / uniform, 0.0, 1.0);
  const double cv = spread / steps;
  const double apart = 1.0 - in_phase;
  const double mean_left = steps * (1.0 + (in.batch - 1.0) * (1.0 + cv * cv) / 2.0) / in.batch;
  const double last_left = std::max(mean_left, steps * longest_left(cv, in.batch - 1.0));
  // Steps at a falling batch, from the two priced ones.
  const double half = in.drain_step_seconds > 0.0 ? in.drain_step_seconds : in.step_seconds;
  const auto step_at = [&](double share) {
    return std::max(0.0, half + (share - 0.5) * 2.0 * (in.step_seconds - half));
  };
  const double share = mean_left / last_left;
  const double full_steps =
      std::max(0.0, in.prompts * steps / in.batch - in_phase * steps - apart * mean_left);
  const double run = in.prompts * out.prompt_seconds +
                     (full_steps + in_phase * steps) * in.step_seconds + in_phase * drift * half +
                     apart * last_left * step_at(share);
  const double steady = in.prompts * (out.prompt_seconds + steps * in.step_seconds / in.batch);
  out.run_efficiency = std::min(1.0, steady / run);
  // Tokens of the falling batch come faster. That no prompt interrupts them is made up by the first
  // wave, whose prompts all interrupt each other.
  const double of_drain = std::min(1.0, apart * in.batch * mean_left / (in.prompts * steps));
  const double faster = in.step_seconds - step_at(std::min(1.0, share * 4.0 / 3.0));
  out.steady.tpot_seconds =
      std::max(0.0, out.steady.tpot_seconds - of_drain * faster / in.accept_length);
}

}  // namespace

std::string_view name_of(ClosedLoopRegime regime) {
  constexpr std::string_view kNames[] = {"lockstep", "drifting", "staggered"};
  return kNames[static_cast<int>(regime)];
}

double mean_decode_context(double input_tokens, double output_tokens, double output_cv) {
  return input_tokens + output_tokens * (1.0 + output_cv * output_cv) / 2.0;
}

double end_spread_steps(const LoopInput& in) {
  const double mean = in.accept_length;
  const double of_length = in.output_cv * in.output_tokens / mean;
  // Renewal theory: n tokens at mean m and variance v a step need n/m steps with variance n v /
  // m^3.
  const double of_drafts = std::max(0.0, in.output_tokens - 1.0) * in.accept_variance;
  return std::hypot(of_length, std::sqrt(of_drafts / (mean * mean * mean)));
}

LoopResult closed_loop_in_its_regime(const LoopInput& in) {
  const double steps = decode_steps(in.output_tokens, in.accept_length);
  const double spread = end_spread_steps(in);
  LoopResult out;
  double waiting = 1.0;  // prompts that an arriving one is prefilled with, itself included
  if (spread == 0.0 || steps == 0.0) {
    out.regime = ClosedLoopRegime::kLockstep;
    // Mixed passes let early prompts decode while later ones are prefilled: what ends together is
    // what shared a pass.
    out.prompts_together = in.mixed ? std::clamp(in.prompts_per_pass, 1.0, in.batch) : in.batch;
    waiting = out.prompts_together;
  } else {
    const double uniform = in.batch / steps;
    double per_step = uniform;
    if (in.prompts > 0.0) {
      // Phases do a random walk of one `spread` a round; half of the rounds stands for all. The
      // density of normal ends with deviation sigma, met by its own members: 1 / (2 sqrt(pi)
      // sigma).
      const double rounds = std::max(1.0, in.prompts / in.batch);
      const double sigma = spread * std::sqrt(std::max(1.0, rounds / 2.0));
      per_step = std::max(uniform, in.batch / (2.0 * std::sqrt(std::numbers::pi) * sigma));
    }
    out.regime = per_step > uniform ? ClosedLoopRegime::kDrifting : ClosedLoopRegime::kStaggered;
    out.prompts_together = together_of(per_step, in.batch);
    waiting = std::min(1.0 + per_step, in.batch);
  }
  out.prompt_seconds = prefill_of(in, out.prompts_together) / out.prompts_together;
  out.steady = closed_loop({.concurrency = in.concurrency,
                            .batch = in.batch,
                            .output_tokens = in.output_tokens,
                            .accept_length = in.accept_length,
                            .step_seconds = in.step_seconds,
                            .prefill_seconds = out.prompt_seconds});
  const double queued = std::max(0.0, in.concurrency - in.batch) / out.steady.requests_per_second;
  double to_first = first_token_seconds(in, waiting);
  double rounds = 0.0;
  if (in.prompts > 0.0) {  // the first wave comes at once
    rounds = std::max(1.0, in.prompts / in.concurrency);
    to_first += (first_token_seconds(in, in.batch) - to_first) / rounds;
  }
  out.steady.ttft_seconds = queued + to_first;
  const double after_first = std::max(1.0, in.output_tokens - 1.0);
  out.steady.tpot_seconds =
      std::max(0.0, out.steady.end_to_end_seconds - out.steady.ttft_seconds) / after_first;
  end_the_run(in, steps, spread, out);
  return out;
}

}  // namespace fulcrum
