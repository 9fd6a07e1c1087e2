// One dimension of a shape is its size (tokens, batch, bytes): times rise along it. The rest names
// the line it lies on.
#pragma once

#include <array>

#include "calibrate/record.h"
#include "model/laws/law_device.h"

namespace fulcrum::calibrate {

struct SizeAxis {
  std::array<double, 8> rest{};  ///< all other dimensions; labels hashed to a number
  double size = 0.0;

  bool operator==(const SizeAxis&) const = default;
};

SizeAxis size_axis(const Shape& shape);

/// Seconds the record's work takes at datasheet peaks, memory traffic included (each operand once):
/// for telling a wrong unit from a slow kernel, not for pricing.
double warm_roofline_seconds(const SeriesKey& key, const Record& record, const LawDevice& device);

}  // namespace fulcrum::calibrate
