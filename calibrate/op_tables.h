// From ops timed alone (`replay step --alone`) to the tables that price them, and from ops timed
// inside steps to the tables' discrepancy.
#pragma once

#include <string>
#include <vector>

#include "model/model_config.h"
#include "model/op_table.h"

namespace fulcrum::calibrate {

/// One record of an op: alone, or its mean over the executions in one step.
struct OpRecord {
  std::string op;
  int tensor_parallel = 1;
  double requests = 1.0;
  int draft_tokens = 0;
  double context_tokens = 0.0;
  double seconds = 0.0;  ///< of one execution
  double standard_error_seconds = 0.0;
  bool throttled = false;
};

struct TabulatedOp {
  OpTable table;
  double median_standard_error = 0.0;  ///< relative, of its points
  int num_throttled = 0;
};

/// One table per op, in order of first appearance; repeated points are averaged (geometric mean).
/// Throws std::invalid_argument naming the op where its points do not fill a grid, or a record that
/// the model has no op for.
std::vector<TabulatedOp> tabulate_ops(const ModelConfig& model, const std::vector<OpRecord>& alone);

/// Sets log_sigma and sigma_seconds of every table from its op inside steps: executions shorter
/// than kShortSeconds give the absolute part, longer ones the relative part (root mean squares
/// about zero, so a bias counts). An op that no step ran gets those of all ops together. Records of
/// ops without a table are passed over.
inline constexpr double kShortSeconds = 2e-5;
void set_discrepancy(const ModelConfig& model, const std::vector<OpRecord>& in_step,
                     std::vector<TabulatedOp>& tables);

}  // namespace fulcrum::calibrate
