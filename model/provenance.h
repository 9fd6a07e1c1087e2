// Where a number comes from. Nothing enters data/ without one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fulcrum {

enum class Basis { kDatasheet, kMeasured, kFitted, kDerived, kAssumed };

constexpr std::string_view name_of(Basis basis) {
  constexpr std::string_view kNames[] = {"datasheet", "measured", "fitted", "derived", "assumed"};
  return kNames[static_cast<int>(basis)];
}

/// A number with its origin; the unit is in the name of the field that holds it.
struct Sourced {
  double value = 0.0;
  Basis basis = Basis::kAssumed;
  std::string source;
  std::string note;
  std::optional<double> standard_error;
};

}  // namespace fulcrum
