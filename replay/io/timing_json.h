// Timings and device states as JSON: the same keys in every record of a measurement file.
#pragma once

#include <nlohmann/json.hpp>

#include "replay/nvml.h"
#include "replay/timing.h"

namespace fulcrum::replay {

/// Unknown values are left out.
nlohmann::ordered_json state_to_json(const DeviceState& state);

/// Adds median, spread, interval, stop reason, device states and raw samples to `json`.
void add_timing(nlohmann::ordered_json& json, const Timing& timing);

}  // namespace fulcrum::replay
