// Kernel times of a profiled step as tables for `fulcrum calibrate`, shapes from the step graph.
#pragma once

#include <string>
#include <vector>

#include "calibrate/io/import/imported_table.h"
#include "calibrate/trace/profile.h"
#include "model/step_graph.h"

namespace fulcrum::calibrate::io {

/// Where the profile was taken.
struct ProfiledServer {
  std::string device;  ///< hardware file's name
  std::string engine;
  int ranks = 1;
};

/// Rows of moe_perf, mhc_module_perf, gemm_perf (head) and of the all-reduces, one per op and
/// profile: mean busy time of an execution. A collective's row is the fastest rank's median: the
/// others' times hold the wait for the last rank. Ops whose kernels serve several shapes (the block
/// GEMMs) or several passes (drafts) have no row; notes say which and why.
std::vector<ImportedTable> profile_tables(const std::vector<StepProfile>& ranks,
                                          const StepGraph& graph, const StepState& state,
                                          const ProfiledServer& server);

}  // namespace fulcrum::calibrate::io
