// Turns a published record (one flat JSON object: gpu, engine, tp, concurrency, output_tok_s, ..)
// into a case: what it states fills the scenario, what it does not becomes a stated assumption with
// a range. Which kernel set an engine build runs is data: data/field/rules.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fulcrum::io {

/// True for an object in the form of such a record.
bool is_field_record(const nlohmann::json& value);

/// data/field/rules.json. Throws InputError: unreadable, wrong schema, a pattern that is no regular
/// expression.
nlohmann::json load_field_rules();

/// The case, in the form load_cases reads. Where the record cannot be priced it carries "exclude"
/// with the reason. Throws InputError for values of the wrong type.
nlohmann::json case_of_record(const nlohmann::json& record, const nlohmann::json& rules,
                              const std::string& file, const std::string& place);

}  // namespace fulcrum::io
