// Measured times of one op on a grid of launches, interpolated: what a kernel costs where it was
// timed in the surroundings of a step (`replay step --alone`). For kernels whose plans jump with
// the shape and that can be timed in seconds a law adds nothing inside the grid.
//   log t is linear between grid points in log(1 + x) of each axis; beyond the grid it goes on with
//   the slope of the last interval, held between 0 and 1 (no launch gets faster with more work,
//   none slower than in proportion).
// Leaves out: jumps between grid points.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "model/step_graph.h"

namespace fulcrum {

/// The three numbers by which launches of one op differ: tokens (rows of a GEMM); width (weights of
/// a GEMM, expert width, heads, bytes per token); extent (rows or keys selected from the context,
/// bytes that do not grow with tokens).
using LaunchFeatures = std::array<double, 3>;
LaunchFeatures launch_features(const Launch& launch);

struct OpTable {
  std::string op;
  std::array<std::vector<double>, 3> knots;  ///< of each feature, rising; at least one each
  std::vector<double> seconds;               ///< [tokens][width][extent]
  /// Discrepancy of an execution inside a step: a share of its time, and a part that does not grow.
  double log_sigma = 0.0;
  double sigma_seconds = 0.0;
  std::string source;
};

double op_table_seconds(const OpTable& table, const Launch& launch);

/// A table as a cost law.
struct TableCost {
  std::shared_ptr<const OpTable> table;
};

}  // namespace fulcrum
