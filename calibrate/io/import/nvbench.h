// JSON results of NVIDIA/nvbench.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/io/import/imported_table.h"

namespace fulcrum::calibrate::io {

/// One state of one benchmark. Cold: caches flushed before each launch; batch: launched back to
/// back, so that operands may stay in L2. The two are different quantities.
struct NvbenchState {
  std::string benchmark;
  std::string device;  ///< as nvbench names it
  std::map<std::string, std::string> axes;
  std::optional<double> cold_seconds;   ///< mean GPU time
  std::optional<double> batch_seconds;  ///< mean GPU time per launch
  std::optional<double> noise_fraction;
  std::optional<double> num_samples;
};

struct NvbenchResult {
  std::vector<NvbenchState> states;
  std::size_t num_skipped = 0;  ///< states nvbench itself skipped
};

/// Both forms: summaries as a map by name (schema 1.0 and before) and as a list with tags, values
/// as numbers or as strings. Throws InputError.
NvbenchResult read_nvbench(const nlohmann::json& document, const std::string& file);

/// States whose axes are M, N and K (any case) as a gemm_perf table, one per device; empty where
/// there are none. Cold times are taken: decode reads each weight once per step.
std::vector<ImportedTable> gemm_tables(const NvbenchResult& result);

/// {"schema": "fulcrum/microbenchmark/1", "source", "states": [..]}
nlohmann::ordered_json nvbench_json(const NvbenchResult& result, const std::string& source);

}  // namespace fulcrum::calibrate::io
