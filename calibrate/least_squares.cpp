#include "calibrate/least_squares.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "calibrate/random.h"
#include "calibrate/trust_region.h"

namespace fulcrum::calibrate {
namespace {

/// Start of an unknown, put into its box.
double held_value(const Unknown& u) {
  return std::clamp(u.start, u.lower, std::max(u.lower, u.upper));
}

/// Latin hypercube over the finite boxes of the free unknowns; others keep their start.
std::vector<Eigen::VectorXd> start_points(const std::vector<Unknown>& unknowns, int count,
                                          std::uint64_t seed) {
  const auto p = static_cast<Eigen::Index>(unknowns.size());
  Eigen::VectorXd first(p);
  for (Eigen::Index j = 0; j < p; ++j) {
    const Unknown& u = unknowns[static_cast<std::size_t>(j)];
    first[j] = held_value(u);
  }
  std::vector<Eigen::VectorXd> points(static_cast<std::size_t>(std::max(1, count)), first);
  const int extra = count - 1;
  if (extra <= 0) return points;
  Random random(seed);
  std::vector<int> cells(static_cast<std::size_t>(extra));
  for (Eigen::Index j = 0; j < p; ++j) {
    const Unknown& u = unknowns[static_cast<std::size_t>(j)];
    if (!u.is_free() || !std::isfinite(u.lower) || !std::isfinite(u.upper)) continue;
    std::iota(cells.begin(), cells.end(), 0);
    random.shuffle(cells);
    for (int s = 0; s < extra; ++s) {
      const double position = (cells[static_cast<std::size_t>(s)] + random.uniform()) / extra;
      points[static_cast<std::size_t>(s + 1)][j] = u.lower + position * (u.upper - u.lower);
    }
  }
  return points;
}

std::vector<Eigen::Index> free_indices(const std::vector<Unknown>& unknowns) {
  std::vector<Eigen::Index> free;
  for (std::size_t j = 0; j < unknowns.size(); ++j) {
    if (unknowns[j].is_free()) free.push_back(static_cast<Eigen::Index>(j));
  }
  return free;
}

/// The same problem in the free unknowns only: laws carry many parameters that a kernel does not
/// use, and the factorisation costs the square of their number.
LeastSquaresProblem reduce(const LeastSquaresProblem& full, const std::vector<Eigen::Index>& free) {
  LeastSquaresProblem reduced;
  reduced.num_residuals = full.num_residuals;
  reduced.weights = full.weights;
  reduced.clusters = full.clusters;
  const auto p = static_cast<Eigen::Index>(full.unknowns.size());
  Eigen::VectorXd held(p);
  for (Eigen::Index j = 0; j < p; ++j) {
    held[j] = held_value(full.unknowns[static_cast<std::size_t>(j)]);
  }
  for (const Eigen::Index j : free) {
    reduced.unknowns.push_back(full.unknowns[static_cast<std::size_t>(j)]);
  }
  if (full.prior) {
    // |L_f x_f + L_h (h - m_h) - L_f m_f|^2: the held part only shifts the mean's residual. A mean
    // in x_f that gives the same residual exists in the least-squares sense; the rest is constant.
    GaussianPrior prior;
    prior.precision_root.resize(full.prior->precision_root.rows(),
                                static_cast<Eigen::Index>(free.size()));
    Eigen::VectorXd shift = held - full.prior->mean;
    for (std::size_t k = 0; k < free.size(); ++k) {
      prior.precision_root.col(static_cast<Eigen::Index>(k)) =
          full.prior->precision_root.col(free[k]);
      shift[free[k]] = -full.prior->mean[free[k]];
    }
    prior.mean =
        prior.precision_root.colPivHouseholderQr().solve(-full.prior->precision_root * shift);
    reduced.prior = std::move(prior);
  }
  reduced.evaluate = [evaluate = full.evaluate, held, free, rows = full.num_residuals](
                         const Eigen::VectorXd& x, Eigen::VectorXd& residuals,
                         RowMatrix* jacobian) {
    Eigen::VectorXd all = held;
    for (std::size_t k = 0; k < free.size(); ++k) {
      all[free[k]] = x[static_cast<Eigen::Index>(k)];
    }
    if (jacobian == nullptr) return evaluate(all, residuals, nullptr);
    RowMatrix wide(rows, held.size());
    if (!evaluate(all, residuals, &wide)) return false;
    for (Eigen::Index i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < free.size(); ++k) {
        (*jacobian)(i, static_cast<Eigen::Index>(k)) = wide(i, free[k]);
      }
    }
    return true;
  };
  return reduced;
}

/// Puts a reduced summary back into the full order; held unknowns have no error.
void expand(const LeastSquaresProblem& full, const std::vector<Eigen::Index>& free,
            LeastSquaresSummary& summary) {
  const auto p = static_cast<Eigen::Index>(full.unknowns.size());
  Eigen::VectorXd x(p);
  for (Eigen::Index j = 0; j < p; ++j) {
    x[j] = held_value(full.unknowns[static_cast<std::size_t>(j)]);
  }
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(p, p);
  std::vector<std::optional<double>> errors(full.unknowns.size());
  for (std::size_t a = 0; a < free.size(); ++a) {
    const auto ra = static_cast<Eigen::Index>(a);
    if (summary.x.size() > 0) x[free[a]] = summary.x[ra];
    errors[static_cast<std::size_t>(free[a])] = summary.standard_errors[a];
    for (std::size_t b = 0; summary.covariance.size() > 0 && b < free.size(); ++b) {
      covariance(free[a], free[b]) = summary.covariance(ra, static_cast<Eigen::Index>(b));
    }
  }
  summary.x = std::move(x);
  summary.covariance = std::move(covariance);
  summary.standard_errors = std::move(errors);
}

}  // namespace

const char* to_string(Termination termination) {
  switch (termination) {
    case Termination::kGradient:
      return "converged: gradient within tolerance";
    case Termination::kCost:
      return "converged: cost decrease within tolerance";
    case Termination::kStep:
      return "converged: step within tolerance";
    case Termination::kNoDescent:
      return "no step lowers the cost";
    case Termination::kMaxIterations:
      return "iteration limit reached";
    case Termination::kInvalidStart:
      return "residuals undefined at every start";
    case Termination::kNoUnknowns:
      return "no free unknowns";
  }
  return "";
}

LeastSquaresSummary solve(const LeastSquaresProblem& problem, const LeastSquaresOptions& options) {
  const std::vector<Eigen::Index> free = free_indices(problem.unknowns);
  if (!free.empty() && free.size() < problem.unknowns.size()) {
    LeastSquaresSummary summary = solve(reduce(problem, free), options);
    expand(problem, free, summary);
    return summary;
  }
  LeastSquaresSummary summary;
  const std::vector<Eigen::VectorXd> starts =
      start_points(problem.unknowns, options.num_starts, options.seed);
  const bool any_free = !free.empty();
  struct Candidate {
    internal::Run run;
    int start = 0;
  };
  std::vector<Candidate> candidates;
  const bool several = starts.size() > 1;
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const int limit = !any_free ? 0 : several ? options.short_iterations : options.max_iterations;
    candidates.push_back({internal::run_levenberg_marquardt(problem, options, starts[s], limit),
                          static_cast<int>(s)});
    summary.num_evaluations += candidates.back().run.num_evaluations;
  }
  const double initial_cost = candidates.front().run.initial_cost;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.run.cost < b.run.cost; });
  if (several) {
    const auto keep = static_cast<std::size_t>(std::max(1, options.num_finished));
    candidates.resize(std::min(candidates.size(), keep));
    for (Candidate& candidate : candidates) {
      if (candidate.run.converged || !std::isfinite(candidate.run.cost)) continue;
      const int before = candidate.run.iterations;
      candidate.run = internal::run_levenberg_marquardt(problem, options, candidate.run.x,
                                                        options.max_iterations);
      summary.num_evaluations += candidate.run.num_evaluations;
      candidate.run.iterations += before;
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.run.cost < b.run.cost; });
  }
  const Candidate& best = candidates.front();
  summary.termination = any_free ? best.run.termination : Termination::kNoUnknowns;
  summary.converged = best.run.converged || !any_free;
  summary.iterations = best.run.iterations;
  summary.chosen_start = best.start;
  summary.initial_cost = initial_cost;
  summary.cost = best.run.cost;
  summary.largest_cosine = best.run.largest_cosine;
  summary.x = best.run.x;
  for (const Candidate& candidate : candidates) {
    if (candidate.run.cost <= best.run.cost * 1.001) ++summary.num_agreeing;
  }
  if (!std::isfinite(summary.cost)) {
    summary.termination = Termination::kInvalidStart;
    summary.converged = false;
    summary.standard_errors.resize(problem.unknowns.size());
    return summary;
  }
  internal::add_statistics(problem, options, summary);
  return summary;
}

std::string describe(const LeastSquaresProblem& problem, const LeastSquaresSummary& summary) {
  std::ostringstream out;
  out << "least squares: " << problem.num_residuals << " residuals, " << problem.unknowns.size()
      << " unknowns\n"
      << "  " << to_string(summary.termination) << " after " << summary.iterations
      << " iterations (start " << summary.chosen_start << ", " << summary.num_evaluations
      << " evaluations over all starts, " << summary.num_agreeing << " starts agree)\n"
      << "  cost " << summary.initial_cost << " -> " << summary.cost;
  if (summary.residual_sd) out << ", residual sd " << *summary.residual_sd;
  out << ", condition " << summary.condition_number << "\n";
  for (std::size_t j = 0; j < problem.unknowns.size(); ++j) {
    out << "  " << problem.unknowns[j].name << " = "
        << (summary.x.size() > 0 ? summary.x[static_cast<Eigen::Index>(j)] : 0.0);
    if (summary.standard_errors[j]) out << " +- " << *summary.standard_errors[j];
    out << "\n";
  }
  for (const std::string& name : summary.at_lower_bound)
    out << "  at lower bound: " << name << "\n";
  for (const std::string& name : summary.at_upper_bound)
    out << "  at upper bound: " << name << "\n";
  for (const NullDirection& direction : summary.null_directions) {
    out << "  not identified:";
    for (std::size_t k = 0; k < direction.names.size(); ++k) {
      out << " " << direction.components[k] << "*" << direction.names[k];
    }
    out << "\n";
  }
  return out.str();
}

ResidualFunction with_numeric_jacobian(
    std::function<bool(const Eigen::VectorXd&, Eigen::VectorXd&)> residuals,
    std::vector<Unknown> unknowns) {
  return [residuals = std::move(residuals), unknowns = std::move(unknowns)](
             const Eigen::VectorXd& x, Eigen::VectorXd& r, RowMatrix* jacobian) {
    if (!residuals(x, r)) return false;
    if (jacobian == nullptr) return true;
    const double relative = std::cbrt(std::numeric_limits<double>::epsilon());
    Eigen::VectorXd high(r.size()), low(r.size());
    for (Eigen::Index j = 0; j < x.size(); ++j) {
      const Unknown& u = unknowns[static_cast<std::size_t>(j)];
      double typical = std::abs(u.start);
      if (typical == 0.0) typical = std::isfinite(u.upper - u.lower) ? u.upper - u.lower : 1.0;
      const double h = relative * std::max(std::abs(x[j]), 1e-3 * typical);
      Eigen::VectorXd shifted = x;
      shifted[j] = std::min(x[j] + h, u.upper);
      const double x_high = shifted[j];
      if (!residuals(shifted, high)) return false;
      shifted[j] = std::max(x[j] - h, u.lower);
      const double x_low = shifted[j];
      if (!residuals(shifted, low)) return false;
      if (x_high > x_low) {
        jacobian->col(j) = (high - low) / (x_high - x_low);
      } else {
        jacobian->col(j).setZero();
      }
    }
    return true;
  };
}

}  // namespace fulcrum::calibrate
