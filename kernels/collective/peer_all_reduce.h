// All-reduce among GPUs that can address each other's memory, without NCCL: one kernel per rank, in
// which blocks of the same number meet through flags in peer memory.
//
//   one-shot  every rank reads every other rank's message:          n-1 messages in, one meeting
//   two-shot  every rank reduces 1/n of it and fetches the rest:    2(n-1)/n messages in, two
//
// Sums are taken in float in rank order, so all ranks hold the same bits and both variants agree.
// Messages are staged twice, alternating by call: a rank that is a call ahead cannot overwrite what
// another still reads, because to be two ahead it must have met that rank in between. Ranks must
// therefore make the same calls in the same order. The kernel keeps its place in device memory, so
// that a captured graph can be replayed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/claim.h"

namespace fulcrum::kernels {

inline constexpr int kMaxPeerRanks = 8;
/// All blocks of a launch must be resident at once on every rank; every GPU here has more
/// multiprocessors than this.
inline constexpr int kMaxPeerBlocks = 64;
/// Messages are moved in 16-byte pieces.
inline constexpr std::size_t kPeerAlignmentBytes = 16;

enum class PeerAlgorithm { kOneShot, kTwoShot };
enum class PeerType { kBfloat16, kFloat32 };

/// Calls made so far on one rank; device memory, zero at the start.
struct PeerControl {
  std::uint32_t calls = 0;
  std::uint32_t meetings = 0;
  std::uint32_t blocks_done = 0;
};

/// Nanoseconds of this GPU's %globaltimer in block 0: kernel entered, all ranks met (the message
/// can be read), result written. met - entered is mostly the wait for the last rank.
struct PeerTimes {
  std::uint64_t entered = 0;
  std::uint64_t met = 0;
  std::uint64_t done = 0;
};

/// One rank's view: addresses usable on its device. Entry `rank` of both arrays is its own memory.
struct PeerView {
  void* staging[kMaxPeerRanks] = {};         ///< 2 * capacity_bytes each
  std::uint32_t* flags[kMaxPeerRanks] = {};  ///< kPeerFlagWords each, zero at the start
  PeerControl* control = nullptr;
  std::int64_t capacity_bytes = 0;
  int rank = 0;
  int num_ranks = 1;
};
inline constexpr std::size_t kPeerFlagWords =
    static_cast<std::size_t>(kMaxPeerBlocks) * kMaxPeerRanks;

struct PeerAllReduce {
  const void* in = nullptr;  ///< this rank's message, 16-byte aligned; may equal `out`
  void* out = nullptr;
  std::int64_t count = 0;  ///< elements; bytes a multiple of 16, at most the view's capacity
  PeerType type = PeerType::kBfloat16;
  PeerAlgorithm algorithm = PeerAlgorithm::kOneShot;
  int num_blocks = 0;          ///< 0: as many as the message fills, up to kMaxPeerBlocks
  PeerTimes* times = nullptr;  ///< optional, device memory
};

/// cudaErrorInvalidValue for a message outside the contract above. Waits in the kernel for the
/// other ranks' launches: without them it never ends.
[[nodiscard]] cudaError_t launch_peer_all_reduce(const PeerView& view, const PeerAllReduce& call,
                                                 cudaStream_t stream);

/// Bytes that must enter or leave this rank over its links, in the direction that carries more, and
/// additions.
Claim peer_all_reduce_claim(std::int64_t count, PeerType type, int num_ranks,
                            PeerAlgorithm algorithm);

}  // namespace fulcrum::kernels
