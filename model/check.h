// Is a measurement possible, plausible, comparable? Physics first, then its own arithmetic, then
// the model (F21 in model/README.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/case.h"
#include "model/levers.h"

namespace fulcrum {

/// In order of severity; a report takes its worst finding.
enum class CheckVerdict { kPlausible, kCannotTell, kNotComparable, kImplausible, kImpossible };
/// "plausible", "cannot_tell", "not_comparable", "implausible", "impossible".
std::string_view name_of(CheckVerdict verdict);

struct Finding {
  CheckVerdict verdict = CheckVerdict::kPlausible;
  std::string rule;  ///< e.g. "memory roof", "Little's law"
  std::string text;  ///< one sentence with its numbers
  std::optional<double> measured;
  std::optional<double> limit;  ///< what the rule allows, in the unit of `measured`
};

struct CheckReport {
  CheckVerdict verdict = CheckVerdict::kCannotTell;
  std::vector<Finding> findings;  ///< the worst first
};

/// Least seconds of one step of this deployment whatever its kernels: each weight that a step
/// cannot do without (the experts of one token) crosses DRAM once, and its FLOP run at the
/// datasheet peak. Requests may route alike, so more of them need no more experts.
double least_step_seconds(const Deployment& deployment, double requests);

/// What contradicts itself without any knowledge of the deployment: order of percentiles, tokens
/// against duration, Little's law, TPOT against tok/s and ITL, a stated K against the accept
/// length.
std::vector<Finding> check_arithmetic(const ServingResult& result);

/// What contradicts itself or physics: percentiles out of order, accept length outside [1, 1 + K],
/// tok/s against duration, latency against concurrency (Little), TPOT against tok/s, the memory and
/// compute roofs, the launch floor of the kernel set. Nothing is compared with the cost model.
std::vector<Finding> check_consistency(const Deployment& deployment, const Measured& measured);

/// Measured against the predicted interval, with the term that would explain the gap.
std::vector<Finding> check_against_model(const Case& one);

/// The findings on a case: its own load, lengths and assumptions.
CheckReport check_case(const Case& one);

/// All findings on one measurement. With no load stated it says what it cannot tell.
CheckReport check(const Deployment& deployment, const Measured& measured);

/// One arm of an A/B: what was deployed and what was measured.
struct Arm {
  const Deployment& deployment;
  const Measured& measured;
};
/// Whether B - A says something about the lever: loads, prompts, lengths, versions and the batch
/// that memory allows must be the same; the difference must exceed run-to-run noise, else the
/// repeats it needs; and the predicted gain is set beside the measured one.
CheckReport check_pair(const Arm& a, const Arm& b);

/// A promised gain against the lever's interval and its Amdahl ceiling.
CheckReport check_claim(const LeverResult& lever, double claimed_ratio);

/// Sorts by severity and takes the worst verdict.
CheckReport report_of(std::vector<Finding> findings);

}  // namespace fulcrum
