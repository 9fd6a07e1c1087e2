// A profiled step beside a predicted one, op by op.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/trace/profile.h"
#include "model/predict.h"

namespace fulcrum::calibrate {

struct OpComparison {
  std::string op;  ///< as the trace rules name it; "gap" for idle time
  std::optional<double> measured_seconds;
  std::optional<double> predicted_seconds;
};

/// Every op of either side, longest measured first. Predicted ops are added to the measured op of
/// their own name or else of their slot (a kernel name cannot tell wq_b from wo_b); those of draft
/// passes too, whose kernels are the same.
std::vector<OpComparison> compare(const StepProfile& profile,
                                  const std::vector<BreakdownLine>& breakdown);

}  // namespace fulcrum::calibrate
