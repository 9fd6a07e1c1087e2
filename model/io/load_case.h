// Reads case files: one JSON object a line, an array, or a single object.
//   {"id", "scenario": NAME or OBJECT, "overrides": {PATH: VALUE}, "concurrency",
//    "measured": {"output_tokens_per_second", "tpot_seconds", "step_seconds", "accept_length", ..},
//    "source", "pair", "panel", "split", "assumptions": [..], "exclude": REASON}
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/case.h"
#include "model/io/load_scenario.h"

namespace fulcrum::io {

/// One case as it stands, or as its published record becomes one (model/io/field_record.h).
// nlohmann::json moves without throwing, which the check does not see.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct CaseDocument {
  nlohmann::json value;
  std::size_t number = 0;  ///< its line, or its place in an array, from 1
};

/// Throws InputError: unreadable, not JSON, no case, a record with values of the wrong type.
std::vector<CaseDocument> read_case_documents(const std::string& path);

/// Throws InputError for a file that cannot be read, is not JSON, or whose cases lack their form
/// (id, scenario, measured; numbers that are not positive). A case whose scenario cannot be
/// resolved, that measures nothing a prediction has, or that says "exclude" is excluded with the
/// reason, and the rest is scored. Unknown keys of a case are warnings.
CaseSet load_cases(const std::string& path);

/// The measured part: the keys of a serving result, a latency as a number (its mean) or as
/// {"mean", "p50", ..}, and step_seconds. `file` and `pointer` name the place in errors.
Measured parse_measured(const nlohmann::json& value, const std::string& file,
                        const std::string& pointer, std::vector<std::string>& warnings);

/// Measurements to judge: a case file's "measured" objects, a bare measured object, or whatever
/// read_serving_results reads. Never empty. Throws InputError.
std::vector<Measured> load_measured(const std::string& path, std::vector<std::string>& warnings);

}  // namespace fulcrum::io
