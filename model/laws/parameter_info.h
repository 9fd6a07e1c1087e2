// Description of one law parameter, shared by the pricing (defaults, bounds) and the calibrator.
#pragma once

#include <string_view>

namespace fulcrum {

/// How a parameter moves to another device through the hardware files.
enum class Transfer {
  kDimensionless,  ///< an efficiency, a tile size, a ratio: carried over as it is
  kTime,           ///< a latency; carried over as it is, with a wider error
  kPerSecond,      ///< a rate in base units; scaled by the device's matching peak
};

/// One parameter of a law: name with unit, closed bounds, start value.
struct ParameterInfo {
  std::string_view name;  ///< e.g. "launch_floor_seconds"
  std::string_view unit;  ///< e.g. "s", "1", "B/s"
  double lower = 0.0;
  double upper = 0.0;
  double start = 0.0;
  Transfer transfer = Transfer::kDimensionless;
};

}  // namespace fulcrum
