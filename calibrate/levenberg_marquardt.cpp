#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <optional>

#include "calibrate/trust_region.h"

namespace fulcrum::calibrate::internal {
namespace {

/// Linearised, robust-weighted problem at x, reduced to p rows.
struct Linearisation {
  Eigen::MatrixXd r;          // [p,p]
  Eigen::VectorXd c;          // [p], Q^T residual
  Eigen::VectorXd gradient;   // [p]
  Eigen::VectorXd row_scale;  // [n], robust weights' roots
  double residual_norm = 0.0;
};

Linearisation linearise(const LeastSquaresProblem& problem, const LeastSquaresOptions& options,
                        const Eigen::VectorXd& x, const Eigen::VectorXd& residuals,
                        const RowMatrix& jacobian) {
  const Eigen::Index n = residuals.size();
  const Eigen::Index p = x.size();
  Eigen::VectorXd row_scale = Eigen::VectorXd::Ones(n);
  if (options.loss != Loss::kSquared) {
    // Iteratively reweighted least squares: psi(z)/z is the weight that makes the gradient exact
    // and the quadratic an upper bound of the robust cost.
    for (Eigen::Index i = 0; i < n; ++i) {
      const double z = residuals[i] / options.loss_scale;
      if (z != 0.0) row_scale[i] = std::sqrt(evaluate_loss(options.loss, z).psi / z);
    }
  }
  TriangularFactor factor(p);
  constexpr Eigen::Index kChunk = 1024;  // bounds the scaled copy of the Jacobian
  for (Eigen::Index begin = 0; begin < n; begin += kChunk) {
    const Eigen::Index rows = std::min(kChunk, n - begin);
    const auto scale = row_scale.segment(begin, rows);
    factor.add(scale.asDiagonal() * jacobian.middleRows(begin, rows),
               scale.cwiseProduct(residuals.segment(begin, rows)));
  }
  if (problem.prior) {
    const GaussianPrior& prior = *problem.prior;
    factor.add(prior.precision_root, prior.precision_root * (x - prior.mean));
  }
  Linearisation linear;
  linear.r = factor.r();
  linear.c = factor.c();
  linear.gradient = linear.r.transpose() * linear.c;
  linear.row_scale = std::move(row_scale);
  linear.residual_norm = std::sqrt(linear.c.squaredNorm() + factor.rest_squared());
  return linear;
}

/// Damped step that stays in the box: unknowns that run into a bound are put there and the rest is
/// solved again.
Eigen::VectorXd bounded_step(const LeastSquaresProblem& problem, const Linearisation& linear,
                             const Eigen::VectorXd& x, const Eigen::VectorXd& scale,
                             std::vector<bool> movable, double damping) {
  const Eigen::Index p = x.size();
  Eigen::VectorXd step = Eigen::VectorXd::Zero(p);
  for (;;) {
    std::vector<Eigen::Index> columns;
    for (Eigen::Index j = 0; j < p; ++j) {
      if (movable[static_cast<std::size_t>(j)]) columns.push_back(j);
    }
    const auto q = static_cast<Eigen::Index>(columns.size());
    if (q == 0) return step;
    Eigen::MatrixXd a = Eigen::MatrixXd::Zero(p + q, q);
    Eigen::VectorXd b = Eigen::VectorXd::Zero(p + q);
    b.head(p) = -(linear.c + linear.r * step);  // steps already put on a bound
    for (Eigen::Index k = 0; k < q; ++k) {
      const Eigen::Index j = columns[static_cast<std::size_t>(k)];
      a.col(k).head(p) = linear.r.col(j) / scale[j];
      a(p + k, k) = std::sqrt(damping);
    }
    const Eigen::VectorXd solution = a.colPivHouseholderQr().solve(b);
    bool clipped = false;
    for (Eigen::Index k = 0; k < q; ++k) {
      const Eigen::Index j = columns[static_cast<std::size_t>(k)];
      const Unknown& unknown = problem.unknowns[static_cast<std::size_t>(j)];
      const double wanted = solution[k] / scale[j];
      const double limited = std::clamp(x[j] + wanted, unknown.lower, unknown.upper) - x[j];
      if (limited != wanted) {
        step[j] = limited;
        movable[static_cast<std::size_t>(j)] = false;
        clipped = true;
      }
    }
    if (clipped) continue;
    for (Eigen::Index k = 0; k < q; ++k) {
      const Eigen::Index j = columns[static_cast<std::size_t>(k)];
      step[j] = solution[k] / scale[j];
    }
    return step;
  }
}

/// Second-order correction along `step` (geodesic acceleration: Transtrum and Sethna,
/// arXiv:1201.5885): the residuals' curvature along the step, by one more evaluation, pulled back
/// through the damped normal equations. Absent if the curvature is so strong that the step itself
/// is not to be trusted.
std::optional<Eigen::VectorXd> accelerate(const LeastSquaresProblem& problem,
                                          const Linearisation& linear, const Eigen::VectorXd& x,
                                          const Eigen::VectorXd& residuals,
                                          const RowMatrix& jacobian, const Eigen::VectorXd& scale,
                                          const Eigen::VectorXd& step, double damping) {
  constexpr double kFraction = 0.1;  // where along the step the curvature is sampled (same paper)
  constexpr double kTrust = 0.75;    // largest |correction| / |step| (same paper, alpha)
  Eigen::VectorXd ahead(residuals.size());
  if (!evaluate_weighted(problem, x + kFraction * step, ahead, nullptr)) return std::nullopt;
  const Eigen::VectorXd curvature =
      2.0 / kFraction * ((ahead - residuals) / kFraction - jacobian * step);
  const Eigen::VectorXd pulled =
      jacobian.transpose() * linear.row_scale.cwiseAbs2().cwiseProduct(curvature);
  Eigen::MatrixXd normal = linear.r.transpose() * linear.r;
  normal.diagonal() += damping * scale.cwiseAbs2();
  Eigen::VectorXd correction = -0.5 * normal.ldlt().solve(pulled);
  for (Eigen::Index j = 0; j < step.size(); ++j) {
    const Unknown& unknown = problem.unknowns[static_cast<std::size_t>(j)];
    if (step[j] == 0.0) correction[j] = 0.0;  // held or on a bound
    const double end = std::clamp(x[j] + step[j] + correction[j], unknown.lower, unknown.upper);
    correction[j] = end - x[j] - step[j];
  }
  if (!(2.0 * correction.cwiseProduct(scale).norm() <= kTrust * step.cwiseProduct(scale).norm())) {
    return std::nullopt;
  }
  return correction;
}

std::vector<bool> movable_unknowns(const LeastSquaresProblem& problem, const Eigen::VectorXd& x,
                                   const Eigen::VectorXd& gradient) {
  std::vector<bool> movable(problem.unknowns.size());
  for (std::size_t j = 0; j < movable.size(); ++j) {
    const Unknown& unknown = problem.unknowns[j];
    const double g = gradient[static_cast<Eigen::Index>(j)];
    const double value = x[static_cast<Eigen::Index>(j)];
    movable[j] = unknown.is_free() && !(value <= unknown.lower && g > 0.0) &&
                 !(value >= unknown.upper && g < 0.0);
  }
  return movable;
}

double largest_cosine(const Linearisation& linear, const std::vector<bool>& movable) {
  double largest = 0.0;
  for (std::size_t k = 0; k < movable.size(); ++k) {
    const auto j = static_cast<Eigen::Index>(k);
    const double norm = linear.r.col(j).norm();
    if (!movable[k] || norm == 0.0 || linear.residual_norm == 0.0) continue;
    largest = std::max(largest, std::abs(linear.gradient[j]) / (norm * linear.residual_norm));
  }
  return largest;
}

}  // namespace

void apply_weights(const LeastSquaresProblem& problem, Eigen::VectorXd& residuals,
                   RowMatrix* jacobian) {
  if (problem.weights.size() == 0) return;
  const Eigen::VectorXd root = problem.weights.cwiseSqrt();
  residuals = residuals.cwiseProduct(root).eval();
  if (jacobian != nullptr) *jacobian = root.asDiagonal() * *jacobian;
}

bool evaluate_weighted(const LeastSquaresProblem& problem, const Eigen::VectorXd& x,
                       Eigen::VectorXd& residuals, RowMatrix* jacobian) {
  if (!problem.evaluate(x, residuals, jacobian) || !residuals.allFinite()) return false;
  if (jacobian != nullptr && !jacobian->allFinite()) return false;
  apply_weights(problem, residuals, jacobian);
  return true;
}

double total_cost(const LeastSquaresProblem& problem, const LeastSquaresOptions& options,
                  const Eigen::VectorXd& x, const Eigen::VectorXd& residuals) {
  double cost = 0.0;
  if (options.loss == Loss::kSquared) {
    cost = 0.5 * residuals.squaredNorm();
  } else {
    const double inverse = 1.0 / options.loss_scale;
    for (const double r : residuals) cost += evaluate_loss(options.loss, r * inverse).rho;
    cost *= options.loss_scale * options.loss_scale;
  }
  if (problem.prior) {
    cost += 0.5 * (problem.prior->precision_root * (x - problem.prior->mean)).squaredNorm();
  }
  return cost;
}

Run run_levenberg_marquardt(const LeastSquaresProblem& problem, const LeastSquaresOptions& options,
                            const Eigen::VectorXd& start, int max_iterations) {
  Run run;
  run.x = start;
  const Eigen::Index n = problem.num_residuals;
  const Eigen::Index p = start.size();
  Eigen::VectorXd residuals(n), trial_residuals(n);
  RowMatrix jacobian(n, p);
  ++run.num_evaluations;
  if (!evaluate_weighted(problem, run.x, residuals, &jacobian)) return run;
  run.cost = run.initial_cost = total_cost(problem, options, run.x, residuals);
  if (!std::isfinite(run.cost)) return run;

  Eigen::VectorXd scale = Eigen::VectorXd::Zero(p);
  double damping = options.initial_damping;
  double growth = 2.0;
  bool fresh = true;  // residuals and jacobian belong to run.x
  Linearisation linear;
  std::vector<bool> movable;
  run.termination = Termination::kMaxIterations;
  while (run.iterations < max_iterations) {
    if (fresh) {
      linear = linearise(problem, options, run.x, residuals, jacobian);
      for (Eigen::Index j = 0; j < p; ++j) {
        // More's scaling lets column norms grow but never shrink, so that the region does not open
        // along a direction only because the model went flat there. Here they forget slowly:
        // MGH10 passes through columns 1e36 larger than those at its solution.
        scale[j] = std::max(0.8 * scale[j], linear.r.col(j).norm());
        if (scale[j] == 0.0) scale[j] = 1.0;
      }
      movable = movable_unknowns(problem, run.x, linear.gradient);
      run.largest_cosine = largest_cosine(linear, movable);
      if (run.largest_cosine <= options.gradient_tolerance) {
        run.termination = Termination::kGradient;
        break;
      }
      fresh = false;
    }
    const Eigen::VectorXd step = bounded_step(problem, linear, run.x, scale, movable, damping);
    const double scaled_step = step.cwiseProduct(scale).norm();
    if (scaled_step <=
        options.step_tolerance * (run.x.cwiseProduct(scale).norm() + options.step_tolerance)) {
      run.termination = Termination::kStep;
      break;
    }
    const double predicted =
        0.5 * (linear.c.squaredNorm() - (linear.c + linear.r * step).squaredNorm());
    Eigen::VectorXd trial = run.x + step;
    bool trusted = true;
    if (options.geodesic_acceleration) {
      ++run.num_evaluations;
      const auto correction =
          accelerate(problem, linear, run.x, residuals, jacobian, scale, step, damping);
      trusted = correction.has_value();
      if (trusted) trial += *correction;
    }
    double trial_cost = std::numeric_limits<double>::infinity();
    ++run.num_evaluations;
    if (trusted && evaluate_weighted(problem, trial, trial_residuals, nullptr)) {
      trial_cost = total_cost(problem, options, trial, trial_residuals);
    }
    const double decrease = run.cost - trial_cost;
    const double ratio = predicted > 0.0 ? decrease / predicted : -1.0;
    if (ratio > 1e-4 && std::isfinite(trial_cost)) {
      ++run.iterations;
      const bool small = decrease <= options.cost_tolerance * run.cost &&
                         predicted <= options.cost_tolerance * run.cost;
      run.x = trial;
      run.cost = trial_cost;
      if (small) {
        run.termination = Termination::kCost;
        break;
      }
      ++run.num_evaluations;
      if (!evaluate_weighted(problem, run.x, residuals, &jacobian)) break;
      const double swing = 2.0 * ratio - 1.0;
      damping *= std::max(1.0 / 3.0, 1.0 - swing * swing * swing);  // Nielsen's rule
      growth = 2.0;
      fresh = true;
    } else {
      damping *= growth;
      growth *= 2.0;
      if (!(damping < 1e30)) {
        run.termination = Termination::kNoDescent;
        break;
      }
    }
  }
  // Without descent at rounding level the optimum is reached as far as doubles can tell.
  run.converged = run.termination == Termination::kGradient ||
                  run.termination == Termination::kCost || run.termination == Termination::kStep ||
                  (run.termination == Termination::kNoDescent && run.largest_cosine < 1e-5);
  return run;
}

}  // namespace fulcrum::calibrate::internal
