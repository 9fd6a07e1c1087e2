// Explanations and simulations as JSON (schemas fulcrum/explanation/1 and fulcrum/simulation/1).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/explain_speculation.h"
#include "model/explain_step.h"
#include "model/memory_change.h"
#include "model/simulate.h"

namespace fulcrum::io {

nlohmann::ordered_json to_json(const std::vector<WaterfallBar>& bars);
nlohmann::ordered_json to_json(const SpeculationPoint& point);
nlohmann::ordered_json to_json(const Crossover& crossover);
nlohmann::ordered_json to_json(const std::vector<GainDip>& dips);
/// One concurrency's throughput by drafted tokens.
nlohmann::ordered_json to_json(double concurrency, const std::vector<DraftChoice>& ladder);
nlohmann::ordered_json to_json(const BatchChange& change);
nlohmann::ordered_json to_json(const TargetAnswer& answer);
nlohmann::ordered_json to_json(const SimulationResult& result);

}  // namespace fulcrum::io
