// From kernel names to ops of the step graph: ordered rules, the first that matches decides.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "model/step_graph.h"

namespace fulcrum::calibrate {

/// `op` names an op of the step graph ("lm_head"), a slot of several ("fp8_gemm"), or one of the
/// words of is_outside_op(): GPU work of an engine that the step graph has no op for.
struct TraceRule {
  std::string pattern;  ///< as written, ECMAScript, searched anywhere in the name
  std::regex regex;
  std::string op;
  OpFamily family = OpFamily::kElementwise;
};

struct TraceRules {
  std::string name;
  std::vector<TraceRule> rules;
};

/// "draft", "memcpy", "memset", "bookkeeping": understood, but not an op of the step graph.
bool is_outside_op(std::string_view op);
/// Whether the step graph has an op or a slot of this name.
bool is_graph_op(std::string_view op);

/// Index of the first rule that matches. Only the first 2048 characters of a name are looked at:
/// std::regex recurses per character, and template arguments run to many thousands.
std::optional<std::size_t> match(const TraceRules& rules, std::string_view kernel_name);

/// Seconds of a set of kernels, e.g. of a profiler's summary table.
struct KernelTotal {
  std::string name;
  double count = 0.0;  ///< launches
  double seconds = 0.0;
};

/// How much of the time the rules explain, and what they leave over, longest first.
struct RuleCoverage {
  double total_seconds = 0.0;
  double mapped_seconds = 0.0;
  std::vector<KernelTotal> unknown;
  double mapped_fraction() const {
    return total_seconds > 0.0 ? mapped_seconds / total_seconds : 0.0;
  }
};
RuleCoverage coverage(const TraceRules& rules, const std::vector<KernelTotal>& kernels);

}  // namespace fulcrum::calibrate
