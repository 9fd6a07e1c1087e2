// Cost law of one collective by one algorithm and protocol: what `collective.h` prices as one of
// several competing lines, seen closely enough to tell them apart.
//
//   t = base + steps hop + ramp S / (S + S_ramp) + f S / (eff link)
//   eff = eff_resident while 4 S fit the L2 cache, eff_streaming beyond
//   ring all-reduce: steps 2(n-1), f = 2(n-1)/n; ring all-gather: n-1, (n-1)/n; tree: 2 log2 n,
//   2(n-1)/n; one-shot: 1, n-1; two-shot: 2, 2(n-1)/n
// * ramp: a short message occupies one channel's first chunk; each further channel or block that
//   takes part adds its start and its synchronisation, until all do.
// * 4 S: the message, its result, and both sides' staging (NCCL's FIFOs, the peer kernel's two
//   buffers). Beyond the cache every byte is also DRAM traffic: on two H200 the rate of LL falls
//   from 137 to 115 GB/s between 8 and 16 MiB.
// Leaves out: fewer channels than the library takes, several hosts, contention, wait for
// stragglers.
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/law_device.h"
#include "model/laws/parameter_info.h"

namespace fulcrum {

enum class CollectivePath { kRing, kTree, kOneShot, kTwoShot };
inline constexpr std::size_t kNumCollectivePathParameters = 6;

template <class Real>
struct CollectivePathLaw {
  Real base_seconds{};
  Real hop_seconds{};
  Real ramp_seconds{};
  Real ramp_bytes{};
  Real efficiency_resident{};
  Real efficiency_streaming{};

  static CollectivePathLaw from(std::span<const Real, kNumCollectivePathParameters> p) {
    return {p[0], p[1], p[2], p[3], p[4], p[5]};
  }
};

/// Copies of a message that a collective keeps touching.
inline constexpr double kMessageCopies = 4.0;

/// `hop_seconds` is held at what the caller knows of the link: with two ranks only, base and hops
/// are one number.
constexpr std::array<ParameterInfo, kNumCollectivePathParameters> collective_path_parameters(
    double hop_seconds) {
  return {{
      {"base_seconds", "s", 5e-7, 1e-4, 5e-6, Transfer::kTime},
      {"hop_seconds", "s", hop_seconds, hop_seconds, hop_seconds, Transfer::kTime},
      {"ramp_seconds", "s", 1e-9, 1e-4, 1e-6, Transfer::kTime},
      {"ramp_bytes", "B", 512.0, 262144.0, 8192.0},
      {"efficiency_resident", "1", 1e-3, 2.0, 0.4},
      {"efficiency_streaming", "1", 1e-3, 2.0, 0.4},
  }};
}

/// For pricing, where the hop comes with the parameters.
inline constexpr std::array<ParameterInfo, kNumCollectivePathParameters> kCollectivePathParameters =
    [] {
      auto parameters = collective_path_parameters(0.6e-6);
      parameters[1].lower = 1e-9;
      parameters[1].upper = 2e-5;
      return parameters;
    }();

struct CollectivePathTraffic {
  double steps = 0.0;
  double fraction = 0.0;  ///< of the message that crosses a rank's link, per direction
};

/// For all-reduce and all-gather; other kinds move like the all-gather.
inline CollectivePathTraffic collective_path_traffic(CollectivePath path, CollectiveKind kind,
                                                     double ranks) {
  const double part = (ranks - 1.0) / ranks;
  if (kind != CollectiveKind::kAllReduce) return {ranks - 1.0, part};
  switch (path) {
    case CollectivePath::kRing:
      return {2.0 * (ranks - 1.0), 2.0 * part};
    case CollectivePath::kTree:
      return {2.0 * std::ceil(std::log2(ranks)), 2.0 * part};
    case CollectivePath::kOneShot:
      return {1.0, ranks - 1.0};
    case CollectivePath::kTwoShot:
      return {2.0, 2.0 * part};
  }
  return {};
}

/// Seconds of one collective inside a graph, all ranks arriving together; 0 for a single rank.
template <class Real>
Real collective_path_seconds(const CollectivePathLaw<Real>& law, CollectivePath path,
                             const CollectiveLaunch& launch, const LawDevice& device) {
  if (launch.ranks <= 1.0) return Real(0.0);
  const CollectivePathTraffic traffic = collective_path_traffic(path, launch.kind, launch.ranks);
  const bool resident = kMessageCopies * launch.bytes <= device.l2_bytes;
  const Real efficiency = resident ? law.efficiency_resident : law.efficiency_streaming;
  const double crossing_seconds =
      traffic.fraction * launch.bytes / device.link_bandwidth_bytes_per_second;
  return law.base_seconds + traffic.steps * law.hop_seconds +
         law.ramp_seconds * launch.bytes / (launch.bytes + law.ramp_bytes) +
         crossing_seconds / efficiency;
}

}  // namespace fulcrum
