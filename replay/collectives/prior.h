// What a collective should take before anything was measured here: NCCL's own tuning model and the
// datasheet's link. Written down before a measurement, so that it can be wrong.
#pragma once

#include <cstdint>
#include <optional>

#include "replay/collectives/setting.h"

namespace fulcrum::replay::collectives {

struct PriorLink {
  double link_bytes_per_second = 0.0;  ///< one direction, datasheet
  double hop_seconds = 0.0;            ///< one way between two GPUs
  bool nvlink = true;
};

/// Seconds of one collective inside a graph. For NCCL with a forced protocol:
///   t = base(algorithm, protocol) + steps hop(algorithm, protocol) + f S / bus(protocol)
/// with the constants of NCCL 2.28 (src/graph/tuning.cc: baseLat, hwLat, llMaxBws of Hopper, and
/// the protocols' shares of the bus); without one, the fastest of the three. For the peer kernels:
///   t = launch + trips hop + f S / link
/// with three one-way trips per meeting (flag, request, reply). Nothing for a single rank.
/// Leaves out: channels, tuner plug-ins, several hosts.
std::optional<double> prior_seconds(const Setting& setting, std::int64_t bytes, int num_ranks,
                                    const PriorLink& link);

}  // namespace fulcrum::replay::collectives
