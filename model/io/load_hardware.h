// Reads a hardware file (schema fulcrum/hardware/1).
#pragma once

#include <string>

#include "model/hardware.h"

namespace fulcrum::io {

/// Throws InputError naming every missing, unknown or impossible field of the file.
Hardware load_hardware(const std::string& path);

}  // namespace fulcrum::io
