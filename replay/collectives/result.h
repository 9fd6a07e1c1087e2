// One timed collective: what was run, what came out, how long it took.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/collectives/setting.h"
#include "replay/nvml.h"
#include "replay/statistics.h"

namespace fulcrum::replay::collectives {

struct CollectiveResult {
  Setting setting;
  int num_ranks = 0;
  std::int64_t bytes = 0;  ///< of the whole result of one rank
  LaunchKind launch = LaunchKind::kGraph;
  std::string status = "ok";  ///< ok, noisy, throttled, failed, skipped
  std::string reason;
  std::int64_t elements_checked = 0;  ///< over all ranks
  std::int64_t elements_wrong = 0;
  int launches_per_sample = 1;
  /// Per collective: from the arrival of the last rank (the shortest of the ranks' durations).
  std::vector<double> samples_seconds;
  SampleSummary summary;
  StopReason stop_reason = StopReason::kContinue;
  /// kSingle: how much longer the rank that came first was in it, one per sample.
  std::vector<double> wait_samples_seconds;
  /// kSingle with the peer kernels: inside the kernel of each rank, median time until all had met,
  /// and from there to the end.
  std::vector<double> meet_seconds_by_rank;
  std::vector<double> move_seconds_by_rank;
  /// Rank 0 was held up by this much on purpose: the wait of the others must show it.
  std::optional<double> injected_delay_seconds;
  DeviceState before, after;  ///< rank 0's device
};

}  // namespace fulcrum::replay::collectives
