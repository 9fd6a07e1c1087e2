#include "replay/collectives/pattern.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/common/formats.h"
#include "kernels/common/parallel.h"

namespace fulcrum::replay::collectives {
namespace {

/// splitmix64 (Steele, Lea, Flood 2014): one independent draw per counter value.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

int value_at(std::uint64_t seed, int rank, std::size_t index) {
  constexpr std::uint64_t kNumValues = 17;  // -8 .. 8
  const std::uint64_t stream = mix(seed ^ (static_cast<std::uint64_t>(rank) << 48U));
  return static_cast<int>(mix(stream + index) % kNumValues) - 8;
}

constexpr std::size_t kChunk = std::size_t{1} << 18U;

/// body(first, last) for chunks of [0, count), from all cores.
template <typename Body>
void in_chunks(std::size_t count, const Body& body) {
  kernels::parallel_for(static_cast<std::int64_t>((count + kChunk - 1) / kChunk),
                        [&](std::int64_t chunk) {
                          const std::size_t first = static_cast<std::size_t>(chunk) * kChunk;
                          body(first, std::min(count, first + kChunk));
                        });
}

std::uint16_t code(int value) { return kernels::encode_bf16(static_cast<float>(value)); }

}  // namespace

std::vector<std::uint16_t> message_of(std::uint64_t seed, int rank, std::size_t count) {
  std::vector<std::uint16_t> message(count);
  in_chunks(count, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) message[i] = code(value_at(seed, rank, i));
  });
  return message;
}

Patterns::Patterns(std::uint64_t seed, int num_ranks, std::size_t count) : sum(count) {
  if (num_ranks > kMaxExactRanks) {
    throw std::invalid_argument("exact checks hold for at most 32 ranks, found " +
                                std::to_string(num_ranks));
  }
  for (int r = 0; r < num_ranks; ++r) message.push_back(message_of(seed, r, count));
  in_chunks(count, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      int total = 0;
      for (int r = 0; r < num_ranks; ++r) total += value_at(seed, r, i);
      sum[i] = code(total);
    }
  });
}

std::size_t count_wrong(const Patterns& patterns, Operation operation, std::size_t count,
                        std::span<const std::uint16_t> result) {
  const auto differing = [](std::span<const std::uint16_t> a, std::span<const std::uint16_t> b) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i) wrong += a[i] == b[i] ? 0 : 1;
    return wrong;
  };
  if (operation == Operation::kAllReduce) {
    if (result.size() != count || count > patterns.sum.size()) {
      throw std::invalid_argument("count_wrong: an all-reduce result has the message's length");
    }
    return differing(result, std::span(patterns.sum).first(count));
  }
  const std::size_t num_ranks = patterns.message.size();
  if (result.size() != num_ranks * count || count > patterns.sum.size()) {
    throw std::invalid_argument("count_wrong: an all-gather result has a message per rank");
  }
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < num_ranks; ++r) {
    wrong +=
        differing(result.subspan(r * count, count), std::span(patterns.message[r]).first(count));
  }
  return wrong;
}

}  // namespace fulcrum::replay::collectives
