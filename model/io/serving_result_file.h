// Serving results in files: schema fulcrum/serving-result/1, and what benchmark clients write.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/serving_result.h"

namespace fulcrum::io {

/// {"schema": "fulcrum/serving-result/1", "source": file, "results": [..]}; unset values are left
/// out.
nlohmann::ordered_json serving_results_json(const std::vector<ServingResult>& results,
                                            const std::string& source);

/// Strict reader of that schema. Throws InputError with every problem of the file.
std::vector<ServingResult> parse_serving_results(const nlohmann::json& document,
                                                 const std::string& file);

/// Reads either the schema above or any client format that `fulcrum import` knows. Throws
/// InputError.
std::vector<ServingResult> read_serving_results(const std::string& path);

}  // namespace fulcrum::io
