// Reads a scenario (schema fulcrum/scenario/1), applies changes, and resolves what it names.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/deployment.h"
#include "model/io/load_calibration.h"

namespace fulcrum::io {

/// A scenario document before it is resolved; changes are applied to the JSON.
// nlohmann::json moves without throwing, which the check does not see.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct ScenarioDocument {
  std::string file;
  nlohmann::json value;
};

/// data/scenarios/<name>.json or a path.
ScenarioDocument read_scenario(const std::string& name);

/// Sets the value at a dotted path ("engine.cuda_graph") or a JSON pointer ("/engine/cuda_graph").
/// `text` is parsed as JSON, else taken as a string. Unknown paths are found when resolving.
void set_value(ScenarioDocument& document, const std::string& path, const std::string& text);
void set_value(ScenarioDocument& document, const std::string& path, nlohmann::json value);

/// Sets the workload's concurrencies. The scenario's num_prompts belong to its own: they stay with
/// those that are wanted, and are dropped when another one is.
void set_concurrency(ScenarioDocument& document, const std::vector<double>& wanted);

/// "PATH=VALUE" as given on a command line. Throws InputError without a '='.
std::pair<std::string, std::string> split_assignment(const std::string& assignment);

/// Loads model, hardware and kernel set. `cache`, where given, keeps what does not change between
/// scenarios. Throws InputError naming every problem found.
Deployment resolve_scenario(const ScenarioDocument& document, std::vector<std::string>& warnings,
                            CalibrationCache* cache = nullptr);

}  // namespace fulcrum::io
