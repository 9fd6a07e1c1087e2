// Machine facts as JSON text, for doctor and for measurement records.
#pragma once

#include <string>

#include "replay/machine/facts.h"

namespace fulcrum::replay {

/// One JSON object; what could not be read is left out.
std::string machine_to_json(const machine::MachineFacts& facts);

}  // namespace fulcrum::replay
