// Rows of a sweep as text: CSV lines, and the same values as JSON arrays.
#pragma once

#include <string>
#include <vector>

#include "model/io/sweep_plan.h"

namespace fulcrum::cli {

/// Column names: `point`, the settings, the workload's three, and what is predicted.
std::vector<std::string> sweep_columns(const io::SweepPlan& plan);

/// One line per row of the block, numbers in the shortest form that reads back exactly. Empty
/// fields (CSV) or null (JSON) where the deployment does not fit. JSON rows end in ",\n".
std::string sweep_lines(const io::SweepBlock& block, bool json, int num_threads);

/// A CSV field, quoted where it must be.
std::string csv_field(const std::string& text);

}  // namespace fulcrum::cli
