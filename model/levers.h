// What a change gives: throughput ratio, Amdahl ceiling, effort, and whether it is worth doing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/deployment.h"
#include "model/interval.h"
#include "model/predict.h"

namespace fulcrum {

/// Run-to-run coefficient of variation of a served throughput: 2.84 %, measured by the author of
/// local-inference-lab/vllm issue 406 on identical arms.
inline constexpr double kThroughputCv = 0.0284;

/// A named change with what it costs and who promised what.
struct Lever {
  std::string name;
  std::string title;
  /// Ops whose time a perfect version would bring to zero; the ceiling prices exactly that.
  CeilingOptions ceiling;
  double effort_minutes = 0.0;
  std::string effort_source;
  std::optional<double> claimed_gain_ratio;
  std::string claim_source;
};

enum class Verdict { kDo, kSkip, kCannotTell };
std::string_view name_of(Verdict verdict);

struct LeverResult {
  std::string name;
  std::string title;
  double concurrency = 0.0;
  Interval gain_ratio;         ///< output tokens/s after over before
  double ceiling_ratio = 1.0;  ///< the same if the ops it acts on took no time at all
  double effort_minutes = 0.0;
  double gain_per_hour = 0.0;  ///< (median gain - 1) per hour of effort
  Verdict verdict = Verdict::kCannotTell;
  std::optional<double> repeats_to_see;  ///< A/B repeats per arm; nothing when there is no gain
  std::string reason;
};

/// `before` with the lever pulled is `after`.
LeverResult evaluate_lever(const Lever& lever, const Deployment& before, const Deployment& after,
                           double concurrency);

/// Repeats per arm that show a relative effect at 5 % significance and 80 % power:
/// n = 2 (2.8 CV / effect)^2. Source: standard two-sample size formula (facts formulas (f)).
double repeats_to_see(double relative_effect);

}  // namespace fulcrum
