// Reads a lever (schema fulcrum/lever/1): changes to a scenario, effort, claim.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/io/load_scenario.h"
#include "model/levers.h"

namespace fulcrum::io {

struct LeverDocument {
  Lever lever;
  std::vector<std::pair<std::string, nlohmann::json>> changes;  ///< JSON pointer, value
  std::string architecture;                                     ///< e.g. "sm_120"; empty: any
};

/// data/levers/<name>.json or a path.
LeverDocument load_lever(const std::string& name);

/// Names of the shipped levers, sorted.
std::vector<std::string> lever_names();

/// Several levers as one: efforts add up, ceilings free what any of them frees; no claim.
Lever combined(std::span<const LeverDocument* const> levers);

/// Whether both set the same place of a scenario, so that only one of them can be pulled.
bool are_alternatives(const LeverDocument& a, const LeverDocument& b);

/// The scenario with the lever pulled.
ScenarioDocument pull(const ScenarioDocument& scenario, const LeverDocument& lever);

}  // namespace fulcrum::io
