// What one step of a profiled decode loop consists of, per op and kernel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/trace/kernel_trace.h"
#include "calibrate/trace/steps.h"
#include "calibrate/trace/trace_rules.h"

namespace fulcrum::calibrate {

/// One kernel of the step; all values are means over the typical steps.
struct ProfileLine {
  std::string op;  ///< "unknown" where no rule matches
  OpFamily family = OpFamily::kElementwise;
  std::string kernel;
  double launches = 0.0;
  double busy_seconds = 0.0;  ///< sum of its launches
  /// Its part of the time in which the GPU works: where k kernels overlap each gets 1/k.
  double exposed_seconds = 0.0;
  double launch_median_seconds = 0.0;  ///< of one launch; the mean where only totals are known
};

/// exposed_seconds of all lines + idle_seconds = step_seconds.
struct StepProfile {
  std::string device;
  StepSearch search;
  bool timed = true;          ///< false: a table of totals, without steps, overlap and idle time
  std::size_t num_steps = 0;  ///< typical ones, averaged here
  std::size_t num_other_steps = 0;  ///< prefill, mixed, other batch sizes
  double step_seconds = 0.0;        ///< mean, from mark to mark
  double step_p05_seconds = 0.0;
  double step_p95_seconds = 0.0;
  double busy_sum_seconds = 0.0;       ///< kernels summed, overlap counted twice
  double busy_union_seconds = 0.0;     ///< some kernel runs
  double idle_seconds = 0.0;           ///< none does, on any stream
  double idle_in_graph_seconds = 0.0;  ///< of these, between kernels of one graph launch
  double graph_fraction = 0.0;         ///< of the launches, nodes of CUDA graphs
  double mapped_fraction = 0.0;        ///< of the busy sum, kernels that a rule knows
  std::vector<ProfileLine> lines;      ///< longest exposed time first
};

/// Profile of one device, nullopt where it ran nothing. Where no period is found the whole trace
/// counts as one step.
std::optional<StepProfile> profile_device(const KernelTrace& trace, std::uint16_t device,
                                          const TraceRules& rules,
                                          const std::optional<std::regex>& anchor = {});

/// A profiler's table of totals as a profile per step, given how many steps it covers. Overlap and
/// idle time are unknown: exposed time is the busy time.
StepProfile profile_totals(const std::vector<KernelTotal>& kernels, const TraceRules& rules,
                           double num_steps, const std::string& device);

/// One op: its lines together, longest first.
struct OpTotal {
  std::string op;
  OpFamily family = OpFamily::kElementwise;
  double launches = 0.0;
  double busy_seconds = 0.0;
  double exposed_seconds = 0.0;
};
std::vector<OpTotal> totals_by_op(const std::vector<ProfileLine>& lines);

}  // namespace fulcrum::calibrate
