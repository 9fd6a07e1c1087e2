// Reads data/acceptance files (schema fulcrum/acceptance/1).
#pragma once

#include <string>
#include <vector>

#include "model/acceptance.h"

namespace fulcrum::io {

/// Throws InputError naming every problem of the file.
AcceptanceProfile load_acceptance(const std::string& path);

/// Stems of data/acceptance/*.json, sorted.
std::vector<std::string> acceptance_names();

}  // namespace fulcrum::io
