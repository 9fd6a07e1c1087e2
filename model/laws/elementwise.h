// Cost law of a kernel that streams rows: norms, quantisers, activation, hyper-connection mixing.
//
//   t = t0 + sqrt(cta^2 + memory^2)
//   cta     waves of rows over the SMs x time of one row on one SM
//   memory  bytes from L2 while the tensors fit there (they were just written), else from DRAM
// Leaves out: rows split over several SMs, shared-memory limits, atomics.
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/law_device.h"
#include "model/laws/parameter_info.h"

namespace fulcrum {

inline constexpr std::size_t kNumElementwiseParameters = 8;

template <class Real>
struct ElementwiseLaw {
  Real launch_floor_seconds{};
  Real row_seconds{};         ///< fixed part of one row
  Real sm_bytes_per_clock{};  ///< one SM on one row
  Real dram_efficiency{};
  Real l2_bandwidth_ratio{};    ///< to the peak DRAM bandwidth
  Real l2_resident_fraction{};  ///< of the L2 that the tensors fill before the first miss
  Real l2_transition_width{};   ///< relative growth from the first miss to no hit
  Real tail_fraction{};         ///< of a last, partial wave that is paid

  static ElementwiseLaw from(std::span<const Real, kNumElementwiseParameters> p) {
    return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
  }
};

inline constexpr std::array<ParameterInfo, kNumElementwiseParameters> kElementwiseParameters{{
    {"launch_floor_seconds", "s", 1e-6, 5e-5, 2.5e-6, Transfer::kTime},
    {"row_seconds", "s", 1e-9, 2e-5, 2e-7, Transfer::kTime},
    {"sm_bytes_per_clock", "B", 1.0, 500.0, 40.0},
    {"dram_efficiency", "1", 0.2, 1.0, 0.9},
    {"l2_bandwidth_ratio", "1", 0.5, 15.0, 3.0},
    {"l2_resident_fraction", "1", 0.05, 2.0, 0.5},
    {"l2_transition_width", "1", 0.05, 20.0, 1.0},
    {"tail_fraction", "1", 0.02, 1.0, 0.7},
}};

namespace elementwise_detail {

/// Smooth step from 0 at `from` to 1 at from * (1 + width).
template <class Real>
Real step(double x, const Real& from, const Real& width) {
  const Real u = (x - from) / (from * width);
  if (u <= Real(0.0)) return Real(0.0);
  if (u >= Real(1.0)) return Real(1.0);
  return u * u * (3.0 - 2.0 * u);
}

/// `rows` rows of `row_bytes` each (read and written), without the launch floor. `traffic` scales
/// what passes through memory: 1 for the least a kernel can move.
template <class Real>
Real stream_seconds(const ElementwiseLaw<Real>& law, double rows, double row_bytes,
                    double fixed_bytes, const Real& traffic, const LawDevice& device) {
  using std::sqrt;
  const double bytes = rows * row_bytes + fixed_bytes;
  const double bandwidth = device.dram_bandwidth_bytes_per_second;
  const Real miss =
      step(bytes / device.l2_bytes, law.l2_resident_fraction, law.l2_transition_width);
  const Real memory = bytes / bandwidth * traffic *
                      (miss / law.dram_efficiency + (1.0 - miss) / law.l2_bandwidth_ratio);
  const double full = rows / device.num_sms;
  const double waves = std::ceil(full);
  Real paid = full + (waves - full) * law.tail_fraction;
  if (paid < Real(1.0)) paid = Real(1.0);
  const Real cta =
      paid * (law.row_seconds + row_bytes / (law.sm_bytes_per_clock * device.sm_clock_hertz));
  return sqrt(cta * cta + memory * memory);
}

}  // namespace elementwise_detail

/// Seconds of one launch; tokens >= 1.
template <class Real>
Real elementwise_seconds(const ElementwiseLaw<Real>& law, const ElementwiseLaunch& launch,
                         const LawDevice& device) {
  return law.launch_floor_seconds +
         elementwise_detail::stream_seconds(law, launch.tokens, launch.bytes_per_token,
                                            launch.fixed_bytes, Real(1.0), device);
}

}  // namespace fulcrum
