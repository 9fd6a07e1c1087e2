// What to measure next: greedy optimal design for a law that is linear near its parameters.
#pragma once

#include <Eigen/Core>
#include <limits>
#include <vector>

namespace fulcrum::calibrate {

/// A design problem in fit scale. Rows of gradients are d log(time) / d parameter.
struct DesignProblem {
  Eigen::MatrixXd covariance;           ///< [p,p], what is known before measuring
  Eigen::MatrixXd candidate_gradients;  ///< [m,p]
  Eigen::VectorXd candidate_costs;      ///< [m] seconds each measurement takes, > 0
  double noise_variance = 0.0;          ///< of one measurement, log units
  Eigen::MatrixXd target_gradients;     ///< [q,p] predictions whose variance is to shrink
  double budget_seconds = std::numeric_limits<double>::infinity();
  std::size_t max_measurements = std::numeric_limits<std::size_t>::max();
  /// Per cost: the largest reduction per second is taken, else the largest reduction.
  bool per_cost = false;
};

struct DesignStep {
  std::size_t candidate = 0;
  double spent_seconds = 0.0;    ///< after this measurement
  double target_variance = 0.0;  ///< mean over targets after this measurement
};

/// Takes each candidate at most once: a repeat of a shape meets the law's same error again. Stops
/// at the budget, or when no candidate lowers the targets' variance by a thousandth.
std::vector<DesignStep> greedy_design(const DesignProblem& problem);

}  // namespace fulcrum::calibrate
