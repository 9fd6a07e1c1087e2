// Cost law of one collective among the GPUs of a host: the fastest of several algorithms, each
// affine in the bytes it sends.
//
//   one-shot        base + (n-1) hop + (n-1) S / (eff link)          every rank reads every other
//   LL, LL128,      base + steps hop + f(n) S / (eff share(n) link)  ring; or a two-shot kernel
//   Simple
//   all-reduce: steps 2(n-1), f = 2(n-1)/n; all-gather and reduce-scatter: n-1 and (n-1)/n;
//   all-to-all: 1 and (n-1)/n.  S as NCCL counts it (the whole message of one rank).
//   share(2) = 1; share(4), share(8) fitted, between them linear in log2 n (switches, root
//   complex).
// Shape after NCCL's own tuning model (src/graph/tuning.cc): latency + bytes / bandwidth per
// algorithm and protocol. A launch timed eagerly costs at least the host's time for it.
// Leaves out: NCCL's wrong switches (a message of 512 KB among 8 PCIe GPUs can take longer than one
// of 1 MB), NVLS as a fourth line, several hosts, contention with other traffic.
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/law_device.h"
#include "model/laws/parameter_info.h"

namespace fulcrum {

inline constexpr std::size_t kNumCollectiveParameters = 18;

template <class Real>
struct CollectiveLine {
  Real base_seconds{};
  Real hop_seconds{};
  Real efficiency{};  ///< of the link, both ranks of a pair counted as NCCL's bus bandwidth
};

template <class Real>
struct CollectiveLaw {
  Real host_floor_seconds{};
  CollectiveLine<Real> one_shot{}, ll{}, ll128{}, simple{};
  Real one_shot_share_8{};
  Real fast_share_4{}, fast_share_8{};  ///< LL and LL128
  Real simple_share_4{}, simple_share_8{};

  static CollectiveLaw from(std::span<const Real, kNumCollectiveParameters> p) {
    return {p[0],
            {p[1], p[2], p[3]},
            {p[4], p[5], p[6]},
            {p[7], p[8], p[9]},
            {p[10], p[11], p[12]},
            p[13],
            p[14],
            p[15],
            p[16],
            p[17]};
  }
};

/// Which lines a library can take; not fitted.
struct CollectiveStructure {
  double one_shot_max_ranks = 0.0;  ///< 0: no one-shot kernel
  bool uses_ll128 = false;
  bool eager = false;  ///< launched by the host each time
  /// The ring lines are seen with more than two ranks only: their shares are then counted from
  /// four.
  bool rings_from_four = false;
};

constexpr std::array<ParameterInfo, kNumCollectiveParameters> collective_parameters(
    const CollectiveStructure& s) {
  constexpr Transfer kTime = Transfer::kTime;
  const auto use = [](bool used, ParameterInfo info, double neutral) {
    if (!used) info.lower = info.upper = info.start = neutral;
    return info;
  };
  const bool shot = s.one_shot_max_ranks > 0.0;
  return {{
      use(s.eager, {"host_floor_seconds", "s", 1e-6, 2e-4, 2e-5, kTime}, 0.0),
      use(shot, {"one_shot_base_seconds", "s", 5e-7, 1e-4, 2e-6, kTime}, 1.0),
      use(shot, {"one_shot_hop_seconds", "s", 1e-9, 1e-5, 1e-7, kTime}, 0.0),
      use(shot, {"one_shot_efficiency", "1", 0.02, 2.0, 0.5}, 1.0),
      {"ll_base_seconds", "s", 5e-7, 1e-4, 4e-6, kTime},
      {"ll_hop_seconds", "s", 1e-9, 1e-5, 9e-7, kTime},
      {"ll_efficiency", "1", 1e-3, 2.0, 0.2},
      use(s.uses_ll128, {"ll128_base_seconds", "s", 5e-7, 1e-4, 5e-6, kTime}, 1.0),
      use(s.uses_ll128, {"ll128_hop_seconds", "s", 1e-9, 1e-5, 1e-6, kTime}, 0.0),
      use(s.uses_ll128, {"ll128_efficiency", "1", 1e-3, 2.0, 0.35}, 1.0),
      {"simple_base_seconds", "s", 5e-7, 2e-4, 1.5e-5, kTime},
      {"simple_hop_seconds", "s", 1e-9, 2e-5, 1.5e-6, kTime},
      {"simple_efficiency", "1", 0.05, 2.0, 0.65},
      use(shot && s.one_shot_max_ranks > 4.0, {"one_shot_share_8", "1", 0.1, 3.0, 0.9}, 1.0),
      use(!s.rings_from_four, {"fast_share_4", "1", 0.1, 3.0, 1.0}, 1.0),
      {"fast_share_8", "1", 0.1, 3.0, 1.0},
      use(!s.rings_from_four, {"simple_share_4", "1", 0.1, 3.0, 0.9}, 1.0),
      {"simple_share_8", "1", 0.1, 3.0, 0.9},
  }};
}

namespace collective_detail {

/// 1 at two ranks, s4 at four, s8 at eight and above; linear in log2 between.
template <class Real>
Real share(double ranks, const Real& s4, const Real& s8) {
  const double depth = std::fmin(3.0, std::log2(ranks));
  if (depth <= 1.0) return Real(1.0);
  if (depth <= 2.0) return (2.0 - depth) * 1.0 + (depth - 1.0) * s4;
  return (3.0 - depth) * s4 + (depth - 2.0) * s8;
}

struct Traffic {
  double steps = 0.0;
  double fraction = 0.0;  ///< of the message that crosses a link
};
inline Traffic ring_traffic(CollectiveKind kind, double ranks) {
  const double part = (ranks - 1.0) / ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return {2.0 * (ranks - 1.0), 2.0 * part};
    case CollectiveKind::kAllToAll:
      return {1.0, part};
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      break;
  }
  return {ranks - 1.0, part};
}

}  // namespace collective_detail

/// Seconds of one collective; 0 for a single rank.
template <class Real>
Real collective_seconds(const CollectiveLaw<Real>& law, const CollectiveStructure& structure,
                        const CollectiveLaunch& launch, const LawDevice& device) {
  using std::sqrt;
  if (launch.ranks <= 1.0) return Real(0.0);
  const double link = device.link_bandwidth_bytes_per_second;
  const auto traffic = collective_detail::ring_traffic(launch.kind, launch.ranks);
  const double crossing_seconds = traffic.fraction * launch.bytes / link;
  const auto line = [&](const CollectiveLine<Real>& l, const Real& share) {
    return l.base_seconds + traffic.steps * l.hop_seconds +
           crossing_seconds / (l.efficiency * share);
  };
  const Real fast = collective_detail::share(launch.ranks, law.fast_share_4, law.fast_share_8);
  Real t = line(law.simple,
                collective_detail::share(launch.ranks, law.simple_share_4, law.simple_share_8));
  const Real ll = line(law.ll, fast);
  if (ll < t) t = ll;
  if (structure.uses_ll128) {
    const Real ll128 = line(law.ll128, fast);
    if (ll128 < t) t = ll128;
  }
  if (launch.ranks <= structure.one_shot_max_ranks) {
    const double others = launch.ranks - 1.0;
    const Real shot = law.one_shot.base_seconds + others * law.one_shot.hop_seconds +
                      others * launch.bytes / link /
                          (law.one_shot.efficiency *
                           collective_detail::share(launch.ranks, Real(1.0), law.one_shot_share_8));
    if (shot < t) t = shot;
  }
  if (structure.eager && t < law.host_floor_seconds) t = law.host_floor_seconds;
  return t;
}

}  // namespace fulcrum
