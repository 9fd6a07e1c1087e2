// Memory that the ranks of one host open to each other, and the repo's own all-reduce on it
// (kernels/collective/).
#pragma once

#include "kernels/collective/peer_all_reduce.h"
#include "kernels/common/device_buffer.h"
#include "replay/collectives/team.h"

namespace fulcrum::replay::collectives {

/// The GPUs of the team cannot address each other's memory: no link, another host, IOMMU.
class NoPeerAccess : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class PeerGroup {
 public:
  /// Collective over the team. `capacity_bytes`: largest message. All ranks throw NoPeerAccess
  /// together when one pair has no peer access (or there are more than kMaxPeerRanks).
  PeerGroup(Team& team, std::int64_t capacity_bytes);
  ~PeerGroup();
  PeerGroup(const PeerGroup&) = delete;
  PeerGroup& operator=(const PeerGroup&) = delete;

  /// Throws kernels::CudaError. All ranks must make the same calls in the same order.
  void all_reduce(const kernels::PeerAllReduce& call, cudaStream_t stream) const;

 private:
  void open_in_process(Team& team);
  void open_across_processes(Team& team);

  Team& team_;
  kernels::DeviceBuffer<std::uint8_t> staging_;
  kernels::DeviceBuffer<std::uint32_t> flags_;
  kernels::DeviceBuffer<kernels::PeerControl> control_;
  std::vector<void*> opened_;  ///< IPC mappings to close
  kernels::PeerView view_;
};

}  // namespace fulcrum::replay::collectives
