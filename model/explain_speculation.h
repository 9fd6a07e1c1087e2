// Why speculation pays at one concurrency and not at another (F16).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/deployment.h"
#include "model/interval.h"
#include "model/memory.h"

namespace fulcrum {

/// One cause's part of the gain. The factors of all causes multiply to the gain.
struct GainCause {
  std::string name;              ///< e.g. "accepted_tokens", "verify_attention", "draft"
  double factor = 1.0;           ///< exp(Shapley value of log throughput)
  double gain_without_it = 1.0;  ///< the gain if this cause alone were absent
};

struct SpeculationPoint {
  double concurrency = 0.0;
  Interval gain_ratio;  ///< output tokens/s with over without
  double accept_length = 1.0;
  EffectiveBatch batch_without;
  EffectiveBatch batch_with;
  bool eager_without = false;
  bool eager_with = false;
  /// The batches differ: the two arms do not measure the same work.
  bool comparable = true;
  std::vector<GainCause> causes;
};

/// The deployment without its drafts.
Deployment without_speculation(const Deployment& deployment);

/// `with` against `without` at one concurrency. Both must share model and hardware.
SpeculationPoint explain_speculation(const Deployment& without, const Deployment& with,
                                     double concurrency);

/// Where the gain falls through 1 for good, interpolated in log concurrency between the points: for
/// the median and for both ends of its interval. Nothing where it does not cross: then either it
/// pays at the last point, or it never does.
struct Crossover {
  enum class Status { kStopsPaying, kNeverStops, kNeverPays };
  std::optional<double> p05;
  std::optional<double> p50;
  std::optional<double> p95;
  Status p05_status = Status::kNeverPays;
  Status p50_status = Status::kNeverPays;
  Status p95_status = Status::kNeverPays;
};
std::string_view name_of(Crossover::Status status);
Crossover crossover(const std::vector<SpeculationPoint>& points);

/// A point whose gain is below both neighbours' by more than 1 %, and the cause that is weakest
/// there against their geometric mean: small batches fill tiles or graphs badly.
struct GainDip {
  double concurrency = 0.0;
  double gain_ratio = 1.0;
  std::string cause;
  double cause_ratio = 1.0;  ///< the cause's factor over its neighbours' mean
};
std::vector<GainDip> gain_dips(const std::vector<SpeculationPoint>& points);

/// Throughput at each number of drafts from 0 to `max_draft_tokens`; acceptance past the measured
/// positions declines (acceptance_for).
struct DraftChoice {
  int draft_tokens = 0;
  double accept_length = 1.0;
  double output_tokens_per_second = 0.0;
  double marginal_gain_ratio = 1.0;  ///< over one draft fewer
};
/// The choice with the highest throughput.
const DraftChoice& best_of(const std::vector<DraftChoice>& ladder);
std::vector<DraftChoice> draft_ladder(const Deployment& deployment, double concurrency,
                                      int max_draft_tokens);

}  // namespace fulcrum
