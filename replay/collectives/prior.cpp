#include "replay/collectives/prior.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fulcrum::replay::collectives {
namespace {

struct Constants {
  double base_seconds;
  double hop_seconds;
  double bus_share;
};

constexpr std::array<const char*, 3> kProtocols = {"LL", "LL128", "Simple"};

// NCCL 2.28, src/graph/tuning.cc: baseLat, hwLat[NVLINK]; shares of the bus as in
// ncclTopoTuneModel (LL carries 4 flag bytes in 8, LL128 8 in 128).
constexpr std::array<Constants, 3> kRing = {
    {{6.6e-6, 0.6e-6, 0.5}, {14.0e-6, 1.9e-6, 0.92}, {8.4e-6, 3.4e-6, 1.0}}};
constexpr std::array<Constants, 3> kTree = {
    {{6.8e-6, 0.6e-6, 1.0 / 3.8}, {14.0e-6, 1.25e-6, 7.0 / 9.0}, {8.4e-6, 4.0e-6, 0.92}}};
// hwLat[PCI] in the same order.
constexpr std::array<double, 3> kRingPcieHop = {1.0e-6, 2.5e-6, 5.7e-6};
constexpr std::array<double, 3> kTreePcieHop = {1.0e-6, 1.9e-6, 4.0e-6};
constexpr double kMaxLowLatencyBytesPerSecond = 141e9;  // llMaxBws, Hopper, one node
/// NCCL takes 20.6 of NVLink 4's 25 GB/s per link (SM90_NVLINK_BW).
constexpr double kNvlinkShare = 20.6 / 25.0;

/// An empty kernel as a node of a graph on an H200 takes 0.5 us of the stream
/// (data/measurements/2026-11-30-h200-calibration/calibration.jsonl, kernel "empty").
constexpr double kGraphNodeSeconds = 0.5e-6;
constexpr double kTripsPerMeeting = 3.0;

double ring_steps(Operation operation, double ranks) {
  return operation == Operation::kAllReduce ? 2.0 * (ranks - 1.0) : ranks - 1.0;
}

double nccl_seconds(const Setting& setting, bool tree, std::size_t protocol, std::int64_t bytes,
                    double ranks, const PriorLink& link) {
  const Constants& c = (tree ? kTree : kRing)[protocol];
  const double hop = link.nvlink ? c.hop_seconds : (tree ? kTreePcieHop : kRingPcieHop)[protocol];
  const double steps =
      tree ? 2.0 * std::ceil(std::log2(ranks)) : ring_steps(setting.operation, ranks);
  double bus = c.bus_share * link.link_bytes_per_second * (link.nvlink ? kNvlinkShare : 1.0);
  if (protocol == 0) bus = std::min(bus, kMaxLowLatencyBytesPerSecond);
  return c.base_seconds + steps * hop +
         link_bytes(setting.operation, bytes, static_cast<int>(ranks)) / bus;
}

}  // namespace

std::optional<double> prior_seconds(const Setting& setting, std::int64_t bytes, int num_ranks,
                                    const PriorLink& link) {
  if (num_ranks < 2) return std::nullopt;
  const double ranks = num_ranks;
  if (setting.carrier != Carrier::kNccl) {
    const bool one_shot = setting.carrier == Carrier::kPeerOneShot;
    const double meetings = one_shot ? 1.0 : 2.0;
    const double crossing = one_shot ? (ranks - 1.0) * static_cast<double>(bytes)
                                     : link_bytes(setting.operation, bytes, num_ranks);
    return kGraphNodeSeconds + meetings * kTripsPerMeeting * link.hop_seconds +
           crossing / link.link_bytes_per_second;
  }
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < kProtocols.size(); ++p) {
    if (!setting.protocol.empty() && setting.protocol != kProtocols[p]) continue;
    if (p == 1 && setting.protocol.empty() && !link.nvlink) continue;  // LL128 needs NVLink
    if (setting.algorithm != "Tree") {
      best = std::min(best, nccl_seconds(setting, false, p, bytes, ranks, link));
    }
    if (setting.algorithm != "Ring" && setting.operation == Operation::kAllReduce) {
      best = std::min(best, nccl_seconds(setting, true, p, bytes, ranks, link));
    }
  }
  return best;
}

}  // namespace fulcrum::replay::collectives
