// Loading shipped data in tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/deployment.h"
#include "model/io/load_scenario.h"

namespace fulcrum::test {

/// The source tree's data/<relative>.
std::string data_path(const std::string& relative);

using Changes = std::vector<std::pair<std::string, nlohmann::json>>;

/// A shipped scenario with changes (JSON pointer, value).
Deployment deployment(const std::string& scenario, const Changes& changes = {});

/// A shipped model config.
ModelConfig model(const std::string& name);

}  // namespace fulcrum::test
