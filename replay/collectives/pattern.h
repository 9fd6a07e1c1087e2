// Messages whose sums are exact: small whole numbers in bfloat16, so that every algorithm, in
// whatever order it adds, must give the same bits, and any other bit is an error.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/collectives/setting.h"

namespace fulcrum::replay::collectives {

/// Elements are in -8 .. 8; sums of up to 32 ranks stay within 256, below which bfloat16 holds
/// every whole number.
inline constexpr int kMaxExactRanks = 32;

/// bfloat16 codes of one rank's message. A function of seed, rank and index only.
std::vector<std::uint16_t> message_of(std::uint64_t seed, int rank, std::size_t count);

/// Messages of all ranks and their sum, `count` elements each. Throws std::invalid_argument for
/// more than kMaxExactRanks.
struct Patterns {
  Patterns(std::uint64_t seed, int num_ranks, std::size_t count);
  std::vector<std::vector<std::uint16_t>> message;  ///< by rank
  std::vector<std::uint16_t> sum;
};

/// Elements of `result` that are not what the operation must give, when each rank sent the first
/// `count` elements of its message. All-gather results hold size() * count elements.
std::size_t count_wrong(const Patterns& patterns, Operation operation, std::size_t count,
                        std::span<const std::uint16_t> result);

}  // namespace fulcrum::replay::collectives
