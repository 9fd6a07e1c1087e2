// Result files of benchmark clients: sglang.bench_serving, vllm bench serve, genai-perf, AIPerf,
// InferenceX (InferenceMAX).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/io/import/import_json.h"
#include "model/serving_result.h"

namespace fulcrum::io {

enum class ServingFormat { kSglang, kVllm, kGenaiPerf, kAiperf, kInferencex };
/// "sglang", "vllm", "genai-perf", "aiperf", "inferencex"
std::string_view name_of(ServingFormat format);
std::optional<ServingFormat> serving_format_named(std::string_view name);

/// The format of one result object, by the keys only that client writes; nullopt if none fits.
std::optional<ServingFormat> detect_serving_format(const nlohmann::json& value);

/// All results of a file; arrays of results are taken apart. Without `format` each is detected.
/// Throws InputError with every problem: no known format, values of a wrong type or sign.
std::vector<ServingResult> import_serving_results(const std::vector<ImportedDocument>& documents,
                                                  const std::string& file,
                                                  std::optional<ServingFormat> format = {});

}  // namespace fulcrum::io
