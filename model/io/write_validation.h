// JSON output of `validate` (schema fulcrum/validation/1) and `check` (schema fulcrum/check/1).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/check.h"
#include "model/validate.h"

namespace fulcrum::io {

/// `scores` and `set` of the same files. The summary counts TPOT, step and throughput; TTFT stands
/// in "splits" only, as a client's arrival pattern decides it.
nlohmann::ordered_json validation_json(const std::vector<Score>& scores, const CaseSet& set);

/// Schema fulcrum/gain-validation/1.
nlohmann::ordered_json gains_json(const GainScores& gains);

/// {"verdict", "findings": [{"verdict", "rule", "text", "measured", "limit"}]}
nlohmann::ordered_json check_json(const CheckReport& report);

}  // namespace fulcrum::io
