// Inner pieces of solve(): one Levenberg-Marquardt run from one start, and the statistics at its
// end. Private to the library; callers use least_squares.h.
#pragma once

#include "calibrate/least_squares.h"
#include "calibrate/triangular.h"

namespace fulcrum::calibrate::internal {

/// Robust cost of weighted residuals r [n] plus the prior's.
double total_cost(const LeastSquaresProblem& problem, const LeastSquaresOptions& options,
                  const Eigen::VectorXd& x, const Eigen::VectorXd& residuals);

/// Multiplies residuals (and Jacobian rows) by sqrt(w_i).
void apply_weights(const LeastSquaresProblem& problem, Eigen::VectorXd& residuals,
                   RowMatrix* jacobian);

/// Evaluates weighted residuals (and Jacobian); false where undefined or not finite.
bool evaluate_weighted(const LeastSquaresProblem& problem, const Eigen::VectorXd& x,
                       Eigen::VectorXd& residuals, RowMatrix* jacobian);

struct Run {
  Termination termination = Termination::kInvalidStart;
  bool converged = false;
  int iterations = 0;
  int num_evaluations = 0;
  double initial_cost = std::numeric_limits<double>::infinity();
  double cost = std::numeric_limits<double>::infinity();
  double largest_cosine = 0.0;
  Eigen::VectorXd x;
};

Run run_levenberg_marquardt(const LeastSquaresProblem& problem, const LeastSquaresOptions& options,
                            const Eigen::VectorXd& start, int max_iterations);

/// Fills residual_sd, covariance, standard errors, bounds, condition and null directions at
/// summary.x.
void add_statistics(const LeastSquaresProblem& problem, const LeastSquaresOptions& options,
                    LeastSquaresSummary& summary);

}  // namespace fulcrum::calibrate::internal
