// From the roofline to the predicted step, and what stands between a deployment and a target.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/deployment.h"
#include "model/predict.h"

namespace fulcrum {

/// One bar of the waterfall: what a family takes above its roofline, or one of the two ends.
struct WaterfallBar {
  std::string name;
  double seconds = 0.0;        ///< of this bar
  double until_seconds = 0.0;  ///< running total, this bar included
};
/// First bar "floor", last "step"; between them families by falling excess, the gap last. The
/// bars but the last sum to the step.
std::vector<WaterfallBar> step_waterfall(const PredictionPoint& point);

/// The most a deployment could give if every kernel ran at its roofline (datasheet peaks), with no
/// gap, no prefill and no wait: aggregate output tokens per second. Leaves out everything but
/// DRAM bytes, FLOP and link bytes, so no kernel set can beat it.
struct RooflineBound {
  double concurrency = 0.0;
  double batch = 0.0;  ///< all replicas
  double output_tokens_per_second = 0.0;
  double step_seconds = 0.0;
  std::string largest_family;  ///< the family with the largest floor
  double largest_share = 0.0;
};
RooflineBound roofline_bound(const Deployment& deployment, double concurrency);

struct TargetAnswer {
  double target_tokens_per_second = 0.0;
  std::vector<RooflineBound> bounds;     ///< one per concurrency tried
  std::vector<double> predicted;         ///< output tokens/s predicted at the same
  std::optional<double> physical_from;   ///< least concurrency whose roof reaches the target
  std::optional<double> predicted_from;  ///< least concurrency predicted to reach it
};
/// Concurrencies double from 1 up to the largest batch that memory and settings allow.
TargetAnswer explain_target(const Deployment& deployment, double target_tokens_per_second);

}  // namespace fulcrum
