// Where the steps of a decode loop begin, found from the order of its kernels alone.
#pragma once

#include <cstddef>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "calibrate/trace/kernel_trace.h"

namespace fulcrum::calibrate {

struct Step {
  std::size_t first = 0;  ///< activities [first, last) of the device
  std::size_t last = 0;
  bool typical = false;  ///< one of the many alike; prefill and mixed steps are not
};

struct StepSearch {
  std::vector<Step> steps;  ///< empty: no period found
  std::string anchor;       ///< kernel at whose every `anchor_stride`-th launch a step begins
  std::size_t anchor_stride = 1;
  /// Share of GPU time in kernels that most steps launch equally often: 1 in a steady loop.
  double regularity = 0.0;
  std::size_t num_typical() const;
};

/// Steps of one device's activities, ordered by start. A kernel that runs rarely and regularly
/// (head, sampling) marks a step; of the kernels between whose launches the most others recur
/// equally often, the most frequent is taken, so that neither a layer (from which head and sampling
/// are missing) nor two steps at once are mistaken for a step. Work before the first mark and after
/// the last is left out. With `anchor` that kernel is taken.
StepSearch find_steps(const std::vector<GpuActivity>& activities,
                      const std::vector<std::string>& names,
                      const std::optional<std::regex>& anchor = {});

}  // namespace fulcrum::calibrate
