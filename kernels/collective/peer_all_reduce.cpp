#include "kernels/collective/peer_all_reduce.h"

namespace fulcrum::kernels {

Claim peer_all_reduce_claim(std::int64_t count, PeerType type, int num_ranks,
                            PeerAlgorithm algorithm) {
  const double others = num_ranks - 1;
  const auto elements = static_cast<double>(count);
  const double bytes = elements * (type == PeerType::kFloat32 ? 4.0 : 2.0);
  if (algorithm == PeerAlgorithm::kOneShot) {
    return {.bytes = others * bytes, .flop = others * elements};
  }
  return {.bytes = 2.0 * others / num_ranks * bytes, .flop = others / num_ranks * elements};
}

}  // namespace fulcrum::kernels
