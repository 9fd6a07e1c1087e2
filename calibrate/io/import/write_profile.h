// Profiles as JSON, schema fulcrum/profile/1.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calibrate/trace/profile.h"

namespace fulcrum::calibrate::io {

/// {"schema", "source", "rules", "notes", "devices": [{step and its parts, "ops": [..], "kernels":
/// [..]}]}; seconds are means per step.
nlohmann::ordered_json profiles_json(const std::vector<StepProfile>& profiles,
                                     const std::string& source, const std::string& rules,
                                     const std::vector<std::string>& notes);

}  // namespace fulcrum::calibrate::io
