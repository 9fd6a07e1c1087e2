// What to run: kernels, shapes and ways of timing, in order.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "replay/case.h"
#include "replay/timing.h"

namespace fulcrum::replay {

struct PlanItem {
  const KernelEntry* kernel = nullptr;
  Shape shape;
  bool verify = true;
  bool time = true;
  CacheState cache = CacheState::kCold;
  LaunchMode launch = LaunchMode::kGraph;
  // Identifies the measurement inside a file: "gemm_fp8_block m=1,n=4096,k=512 cold graph".
  std::string key() const;
};

// Every kernel on its verify_shapes, not timed.
std::vector<PlanItem> verification_plan(std::span<const KernelEntry> kernels);
// What `calibrate` needs: every kernel on its calibration_shapes, cold graph replay; plus the
// instrument's own entries. Each kernel's first shape is verified before it is timed.
std::vector<PlanItem> calibration_plan(std::span<const KernelEntry> kernels);

}  // namespace fulcrum::replay
