// Roofline with a launch floor: what an op costs when nobody has measured its kernel.
//   t = t0 + max(bytes / (eta_m B), flop / (eta_c P), message / (eta_m link))
// Leaves out waves, L2 residency and the bytes-in-flight limit; priced with a wide error.
#pragma once

#include <array>
#include <span>

#include "model/laws/law_device.h"
#include "model/laws/parameter_info.h"

namespace fulcrum {

template <class Real>
struct RooflineLaw {
  Real launch_floor_seconds{};
  Real memory_efficiency{};
  Real compute_efficiency{};

  static RooflineLaw from(std::span<const Real, 3> p) { return {p[0], p[1], p[2]}; }
};

inline constexpr std::array<ParameterInfo, 3> kRooflineParameters{{
    {"launch_floor_seconds", "s", 1e-7, 1e-3, 2.7e-6, Transfer::kTime},
    {"memory_efficiency", "1", 0.01, 1.0, 0.8, Transfer::kDimensionless},
    {"compute_efficiency", "1", 0.001, 1.0, 0.7, Transfer::kDimensionless},
}};

/// `memory_seconds` and `compute_seconds` are the times at the device's peaks.
template <class Real>
Real roofline_seconds(const RooflineLaw<Real>& law, double memory_seconds, double compute_seconds) {
  const Real memory = memory_seconds / law.memory_efficiency;
  const Real compute = compute_seconds / law.compute_efficiency;
  return law.launch_floor_seconds + (compute > memory ? compute : memory);
}

}  // namespace fulcrum
