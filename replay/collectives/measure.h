// Checks and times one setting over all sizes, as one rank of a team.
#pragma once

#include <functional>

#include "replay/collectives/pattern.h"
#include "replay/collectives/result.h"
#include "replay/collectives/team.h"

namespace fulcrum::replay::collectives {

struct MeasureOptions {
  std::vector<std::int64_t> sizes_bytes;
  std::vector<LaunchKind> launches;
  StoppingRule stopping{
      .min_samples = 15, .max_samples = 60, .relative_half_width = 0.01, .max_total_seconds = 0.15};
  /// A sample of a graph or of eager launches lasts at least about this long.
  double sample_seconds = 500e-6;
  int max_launches_per_sample = 64;
  /// Also hold rank 0 up on purpose at this size, if among the sizes: the instrument's own check.
  std::optional<std::int64_t> delayed_size_bytes = 8192;
};

/// All ranks call it together; every rank gets the results. `patterns` must cover the largest size.
/// Throws NcclMissing, NoPeerAccess (setting skipped by the caller), NcclError, CudaError.
std::vector<CollectiveResult> measure_setting(Team& team, const Setting& setting,
                                              const MeasureOptions& options,
                                              const Patterns& patterns);

}  // namespace fulcrum::replay::collectives
