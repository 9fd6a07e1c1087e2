#include "replay/collectives/peer_group.h"

#include <unistd.h>

#include <array>
#include <cstring>

namespace fulcrum::replay::collectives {
namespace {

constexpr std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

template <typename T>
std::vector<T> exchange(Team& team, const T& own) {
  std::vector<T> result;
  for (const std::string& bytes :
       team.all_gather(std::string(reinterpret_cast<const char*>(&own), sizeof own))) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    result.push_back(value);
  }
  return result;
}

/// A failure of one rank must not leave the others waiting: all learn of it and throw.
void agree(Team& team, const std::string& problem) {
  for (const std::string& text : team.all_gather(problem)) {
    if (!text.empty()) throw NoPeerAccess(text);
  }
}

std::string enable_access(int device, int peer) {
  int possible = 0;
  FULCRUM_CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, device, peer));
  if (possible == 0) {
    return "device " + std::to_string(device) + " cannot address the memory of device " +
           std::to_string(peer);
  }
  const cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
  } else {
    FULCRUM_CUDA_CHECK(code);
  }
  return {};
}

}  // namespace

PeerGroup::PeerGroup(Team& team, std::int64_t capacity_bytes) : team_(team) {
  if (team.size() > kernels::kMaxPeerRanks) {
    throw NoPeerAccess("the peer all-reduce is built for at most " +
                       std::to_string(kernels::kMaxPeerRanks) + " ranks");
  }
  FULCRUM_CUDA_CHECK(cudaSetDevice(team.device()));
  constexpr auto kPack = static_cast<std::int64_t>(kernels::kPeerAlignmentBytes);
  capacity_bytes = (capacity_bytes + kPack - 1) / kPack * kPack;
  staging_ = kernels::DeviceBuffer<std::uint8_t>(static_cast<std::size_t>(2 * capacity_bytes));
  flags_ = kernels::DeviceBuffer<std::uint32_t>(kernels::kPeerFlagWords);
  control_ = kernels::DeviceBuffer<kernels::PeerControl>(1);
  flags_.zero();
  control_.zero();
  FULCRUM_CUDA_CHECK(cudaDeviceSynchronize());  // Cleared before any rank can signal.
  view_.control = control_.data();
  view_.capacity_bytes = capacity_bytes;
  view_.rank = team.rank();
  view_.num_ranks = team.size();
  if (team.one_process()) {
    open_in_process(team);
  } else {
    open_across_processes(team);
  }
}

void PeerGroup::open_in_process(Team& team) {
  struct Own {
    int device;
    void* staging;
    std::uint32_t* flags;
  };
  const auto all = exchange(team, Own{team.device(), staging_.data(), flags_.data()});
  std::string problem;
  for (int r = 0; r < team.size(); ++r) {
    if (r != team.rank() && problem.empty()) {
      problem = enable_access(team.device(), all[index(r)].device);
    }
    view_.staging[r] = all[index(r)].staging;
    view_.flags[r] = all[index(r)].flags;
  }
  agree(team, problem);
}

void PeerGroup::open_across_processes(Team& team) {
  struct Own {
    std::array<char, 256> host{};
    cudaIpcMemHandle_t staging{};
    cudaIpcMemHandle_t flags{};
  };
  Own own;
  (void)gethostname(own.host.data(), own.host.size() - 1);
  FULCRUM_CUDA_CHECK(cudaIpcGetMemHandle(&own.staging, staging_.data()));
  FULCRUM_CUDA_CHECK(cudaIpcGetMemHandle(&own.flags, flags_.data()));
  const auto all = exchange(team, own);
  std::string problem;
  for (int r = 0; r < team.size() && problem.empty(); ++r) {
    if (r == team.rank()) {
      view_.staging[r] = staging_.data();
      view_.flags[r] = flags_.data();
      continue;
    }
    if (all[index(r)].host != own.host) {
      problem = "ranks " + std::to_string(team.rank()) + " and " + std::to_string(r) +
                " are on different hosts";
      break;
    }
    void* flags = nullptr;
    const auto open = [&](void** address, const cudaIpcMemHandle_t& handle) {
      const cudaError_t code =
          cudaIpcOpenMemHandle(address, handle, cudaIpcMemLazyEnablePeerAccess);
      if (code != cudaSuccess) {
        (void)cudaGetLastError();
        problem = "memory of rank " + std::to_string(r) +
                  " cannot be opened: " + cudaGetErrorString(code);
        return;
      }
      opened_.push_back(*address);
    };
    open(&view_.staging[r], all[index(r)].staging);
    if (problem.empty()) open(&flags, all[index(r)].flags);
    view_.flags[r] = static_cast<std::uint32_t*>(flags);
  }
  agree(team, problem);
}

PeerGroup::~PeerGroup() {
  // No rank frees memory that a kernel of another may still touch.
  (void)cudaDeviceSynchronize();
  try {
    team_.barrier();
  } catch (const std::exception&) {
    // The others are gone; so is their use of this memory.
  }
  for (void* address : opened_) (void)cudaIpcCloseMemHandle(address);
}

void PeerGroup::all_reduce(const kernels::PeerAllReduce& call, cudaStream_t stream) const {
  FULCRUM_CUDA_CHECK(kernels::launch_peer_all_reduce(view_, call, stream));
}

}  // namespace fulcrum::replay::collectives
