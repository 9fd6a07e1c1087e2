// Reads rules from kernel names to ops (schema fulcrum/trace_rules/1, data/trace_rules/).
#pragma once

#include <string>

#include "calibrate/trace/trace_rules.h"

namespace fulcrum::calibrate::io {

/// {"schema", "name", "label", "source", "rules": [{"match": REGEX, "op", "family", "note"}]}.
/// Throws InputError naming every problem, among them expressions that do not compile.
TraceRules load_trace_rules(const std::string& path);

/// The shipped rules of all kernel sets, data/trace_rules/*.json in order of name, behind `first`
/// (the user's own), which decide before them.
TraceRules shipped_trace_rules(const TraceRules& first = {});

}  // namespace fulcrum::calibrate::io
