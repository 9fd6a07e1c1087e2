#include "replay/plan.h"

namespace fulcrum::replay {

std::string PlanItem::key() const {
  std::string text = kernel->name + " " + shape.to_string();
  if (time) return text + " " + to_string(cache) + " " + to_string(launch);
  return text + " verify";
}

std::vector<PlanItem> verification_plan(std::span<const KernelEntry> kernels) {
  std::vector<PlanItem> items;
  for (const KernelEntry& kernel : kernels) {
    if (kernel.verify_shapes.empty()) continue;
    for (const Shape& shape : parse_shapes(kernel.verify_shapes, kernel.dimensions)) {
      items.push_back({.kernel = &kernel, .shape = shape, .verify = true, .time = false});
    }
  }
  return items;
}

std::vector<PlanItem> calibration_plan(std::span<const KernelEntry> kernels) {
  std::vector<PlanItem> items;
  for (const KernelEntry& kernel : kernels) {
    if (kernel.calibration_shapes.empty()) continue;
    bool first = true;
    for (const Shape& shape : parse_shapes(kernel.calibration_shapes, kernel.dimensions)) {
      items.push_back({.kernel = &kernel, .shape = shape, .verify = first, .time = true});
      first = false;
    }
  }
  return items;
}

}  // namespace fulcrum::replay
