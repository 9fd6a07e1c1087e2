#include "kernels/mhc/mhc.h"

namespace fulcrum::kernels {

std::int64_t mhc_pre_workspace_floats(std::int32_t num_tokens, std::int32_t hidden) {
  const std::int64_t blocks = std::int64_t{kMhcStreams} * hidden / kMhcColumnsPerBlock;
  return num_tokens * blocks * (kMhcMixes + 1);
}

Claim mhc_pre_claim(std::int32_t num_tokens, std::int32_t hidden, std::int32_t num_iterations) {
  const double tokens = num_tokens;
  const double columns = static_cast<double>(kMhcStreams) * hidden;
  const double small = kMhcStreams + kMhcStreams * kMhcStreams;
  // A Sinkhorn iteration is a sum and a division per entry, over rows and over columns.
  return {.bytes = 4.0 * kMhcMixes * columns +
                   tokens * (2.0 * columns + 2.0 * hidden + 4.0 * small) + 2.0 * hidden +
                   4.0 * (kMhcMixes + 3),
          .flop = tokens * (2.0 * kMhcMixes * columns + 2.0 * columns + 2.0 * columns +
                            4.0 * hidden + 64.0 * num_iterations)};
}

Claim mhc_post_claim(std::int32_t num_tokens, std::int32_t hidden) {
  const double values = static_cast<double>(num_tokens) * hidden;
  return {.bytes = values * 2.0 * (2.0 * kMhcStreams + 1.0) +
                   num_tokens * 4.0 * (kMhcStreams + kMhcStreams * kMhcStreams),
          .flop = values * kMhcStreams * (2.0 * kMhcStreams + 1.0)};
}

}  // namespace fulcrum::kernels
