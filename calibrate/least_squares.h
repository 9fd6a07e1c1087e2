// Bounded, robust, weighted nonlinear least squares (Levenberg-Marquardt with an active set).
// Options in, summary out; not converging is a value of the summary, never an exception.
//
//   minimise  sum_i scale^2 rho(sqrt(w_i) r_i(x) / scale) + 1/2 |L (x - mean)|^2,
//             lower <= x <= upper
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/loss.h"

namespace fulcrum::calibrate {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// One unknown. lower == upper or fixed = true holds it at `start`.
struct Unknown {
  std::string name;
  double start = 0.0;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  bool fixed = false;

  bool is_free() const { return !fixed && lower < upper; }
};

/// Gaussian prior on x: mean [p] and root L [k,p] with L^T L the prior precision.
struct GaussianPrior {
  Eigen::VectorXd mean;
  Eigen::MatrixXd precision_root;
};

/// r(x) [n]; fills the Jacobian [n,p] if `jacobian` is not null. Returns false where r is undefined
/// (a step there is refused). Buffers arrive with the right sizes.
using ResidualFunction =
    std::function<bool(const Eigen::VectorXd& x, Eigen::VectorXd& residuals, RowMatrix* jacobian)>;

struct LeastSquaresProblem {
  std::vector<Unknown> unknowns;
  Eigen::Index num_residuals = 0;
  ResidualFunction evaluate;
  /// [n], or empty for 1. With a prior, weights must be 1/variance of each residual.
  Eigen::VectorXd weights;
  std::optional<GaussianPrior> prior;
  /// [n] or empty. Rows with equal number share an error (same shape, same law discrepancy); the
  /// covariance is then the cluster-robust sandwich instead of s^2 (J^T J)^-1.
  std::vector<std::uint32_t> clusters;
};

struct LeastSquaresOptions {
  Loss loss = Loss::kSquared;
  double loss_scale = 1.0;  ///< in units of the weighted residual
  int max_iterations = 200;
  double cost_tolerance = 1e-12;      ///< relative decrease, actual and predicted
  double step_tolerance = 1e-12;      ///< relative, in scaled parameters
  double gradient_tolerance = 1e-12;  ///< largest cosine between residual and a Jacobian column
  double initial_damping = 1e-3;      ///< relative to the squared column norms
  /// Second-order steps: one more evaluation a step, for narrow curved valleys of smooth models.
  bool geodesic_acceleration = false;
  int num_starts = 1;         ///< > 1: Latin hypercube over the boxes, start point included
  int short_iterations = 12;  ///< iterations each start gets before the best are finished
  int num_finished = 3;       ///< starts that are run to convergence
  std::uint64_t seed = 1;
  /// Singular values of the column-scaled Jacobian below this fraction of the largest are null.
  double rank_tolerance = 1e-10;
};

enum class Termination {
  kGradient,       ///< converged: gradient tolerance
  kCost,           ///< converged: cost tolerance
  kStep,           ///< converged: step tolerance
  kNoDescent,      ///< no damping gave a lower cost; converged if the gradient is small
  kMaxIterations,  ///< not converged
  kInvalidStart,   ///< residuals undefined or not finite at every start
  kNoUnknowns,     ///< nothing to fit
};
const char* to_string(Termination termination);

/// A combination of unknowns that the data do not determine: x may move along it at no cost.
struct NullDirection {
  std::vector<std::string> names;  ///< unknowns with a share in it, largest first
  std::vector<double> components;  ///< unit vector in column-scaled units, same order
  double relative_singular_value = 0.0;
};

struct LeastSquaresSummary {
  Termination termination = Termination::kInvalidStart;
  bool converged = false;
  int iterations = 0;       ///< of the chosen start
  int num_evaluations = 0;  ///< residual evaluations over all starts
  int chosen_start = 0;     ///< 0 is the caller's start point
  int num_agreeing = 0;     ///< finished starts whose cost is within 0.1 % of the best
  double initial_cost = 0.0;
  double cost = 0.0;
  double largest_cosine = 0.0;  ///< optimality at the solution
  Eigen::VectorXd x;            ///< [p]
  /// Standard deviation of a weighted residual, sqrt(sum w r^2 / (n - p)); absent if n <= p.
  std::optional<double> residual_sd;
  /// [p,p]; rows and columns of unknowns held, at a bound or not identifiable are zero.
  Eigen::MatrixXd covariance;
  std::vector<std::optional<double>> standard_errors;  ///< absent: fixed, at bound, unidentifiable
  std::vector<std::string> at_lower_bound;
  std::vector<std::string> at_upper_bound;
  double condition_number = 0.0;  ///< of the column-scaled Jacobian of the free unknowns
  std::vector<NullDirection> null_directions;
};

LeastSquaresSummary solve(const LeastSquaresProblem& problem, const LeastSquaresOptions& options);

/// Several lines: asked, used, why it stopped, parameters with errors, what is not identified.
std::string describe(const LeastSquaresProblem& problem, const LeastSquaresSummary& summary);

/// Adds central differences to a function that only knows residuals; 2 p evaluations a Jacobian.
/// Steps are eps^(1/3) of max(|x|, typical size of the box), kept inside the bounds.
ResidualFunction with_numeric_jacobian(
    std::function<bool(const Eigen::VectorXd&, Eigen::VectorXd&)> residuals,
    std::vector<Unknown> unknowns);

}  // namespace fulcrum::calibrate
