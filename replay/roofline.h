// What a data sheet says a launch must take: written down before a measurement, to be compared with
// it.
#pragma once

#include "kernels/common/claim.h"

namespace fulcrum::replay {

struct Roofline {
  double bytes_per_second = 0;
  double flop_per_second = 0;
  double launch_seconds = 0;  // Floor of one launch.
};

// The longer of both times on top of the floor. Leaves out: wave quantization, ramp-up, bytes in
// flight, cache hits, and that a case may launch several kernels.
inline double roofline_seconds(const kernels::Claim& claim, const Roofline& roofline) {
  const double memory = claim.bytes / roofline.bytes_per_second;
  const double compute = claim.flop / roofline.flop_per_second;
  return roofline.launch_seconds + (memory > compute ? memory : compute);
}

}  // namespace fulcrum::replay
