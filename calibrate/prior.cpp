#include "calibrate/prior.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

#include "calibrate/design.h"
#include "calibrate/law_problem.h"
#include "calibrate/split.h"

namespace fulcrum::calibrate {
namespace {

/// A prior learned from few examples never claims more than 3 %: tables differ by that.
constexpr double kLeastPriorSd = 0.03;
/// How many measured rows the examples' residual spread is worth.
constexpr double kPriorRowsForSpread = 5.0;
/// Spread assumed where no example has one: a tenth of an e-fold, the loss scale of a first fit.
constexpr double kUnknownSpread = 0.1;

/// Spread of log(measured / predicted) that a move between devices adds: the median series of
/// H200 SXM's public tables misses RTX PRO 6000 Server's by 14 %, the median of a normal
/// distribution of this width.
constexpr double kTransferSpread = 0.2;

double scale_factor(const Family& family, const SeriesKey& key, const FittedParameter& p,
                    std::size_t index, const LawDevice& from, const LawDevice& to) {
  if (family.transfer_scale != nullptr) return family.transfer_scale(key, index, from, to);
  if (p.transfer != Transfer::kPerSecond) return 1.0;
  return to.dram_bandwidth_bytes_per_second / from.dram_bandwidth_bytes_per_second;
}

bool same_names(const SeriesFit& fit, const std::vector<ParameterInfo>& parameters) {
  return fit.parameters.size() == parameters.size() &&
         std::equal(
             parameters.begin(), parameters.end(), fit.parameters.begin(),
             [](const ParameterInfo& a, const FittedParameter& b) { return a.name == b.name; });
}

/// L with L^T L = inverse of a symmetric positive matrix; directions below 1e-12 of the largest are
/// held at that.
Eigen::MatrixXd inverse_root(const Eigen::MatrixXd& covariance) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(covariance);
  const double least = 1e-12 * eigen.eigenvalues().maxCoeff();
  const Eigen::VectorXd root = eigen.eigenvalues().cwiseMax(least).cwiseSqrt().cwiseInverse();
  return root.asDiagonal() * eigen.eigenvectors().transpose();
}

}  // namespace

std::vector<double> move_parameters(const Family& family, const SeriesFit& fit,
                                    const LawDevice& from, const LawDevice& to) {
  std::vector<double> moved;
  for (std::size_t j = 0; j < fit.parameters.size(); ++j) {
    const FittedParameter& p = fit.parameters[j];
    moved.push_back(
        std::clamp(p.value * scale_factor(family, fit.key, p, j, from, to), p.lower, p.upper));
  }
  return moved;
}

SeriesFit move_fit(const Family& family, const SeriesFit& fit, const SeriesKey& key,
                   const LawDevice& from, const LawDevice& to, double extra_log_sd) {
  SeriesFit moved = fit;
  moved.key = key;
  // Residuals do not move: H200's correction made nine of seventeen series worse on RTX PRO 6000.
  moved.correction = {};
  moved.residual = fit.law_residual;
  moved.residual.scale = std::hypot(fit.law_residual.scale, kTransferSpread);
  moved.scale_beyond = std::hypot(fit.scale_beyond, kTransferSpread);
  // Structure (tile menus, capacities) may differ: names and bounds are the target's.
  const std::vector<ParameterInfo> parameters = family.parameters(key, to);
  const std::vector<double> v = move_parameters(family, fit, from, to);
  for (std::size_t j = 0; j < moved.parameters.size(); ++j) {
    FittedParameter& p = moved.parameters[j];
    if (j < parameters.size() && parameters[j].name == p.name) {
      p.lower = parameters[j].lower;
      p.upper = parameters[j].upper;
    }
    const double factor = p.value != 0.0 ? v[j] / p.value : 1.0;
    p.value = std::clamp(v[j], p.lower, p.upper);
    if (p.standard_error) *p.standard_error *= std::abs(factor);
    if (!p.fixed) {
      moved.covariance(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(j)) +=
          extra_log_sd * extra_log_sd;
    }
  }
  return moved;
}

FamilyPrior learn_prior(const Family& family, const SeriesKey& key, const LawDevice& device,
                        std::span<const Example> examples) {
  const std::vector<ParameterInfo> parameters = family.parameters(key, device);
  const auto p = static_cast<Eigen::Index>(parameters.size());
  FamilyPrior prior;
  prior.mean.resize(p);
  for (const ParameterInfo& info : parameters) prior.names.emplace_back(info.name);

  std::vector<const SeriesFit*> fits;
  std::vector<double> spreads;
  for (const Example& example : examples) {
    if (example.fit->family != family.name || !same_names(*example.fit, parameters)) continue;
    fits.push_back(example.fit);
    std::vector<double> moved = move_parameters(family, *example.fit, example.device, device);
    for (std::size_t j = 0; j < moved.size(); ++j) {
      // Boxes differ between kernels: what one does not use is held at 0, which has no logarithm.
      if (!(moved[j] >= parameters[j].lower)) moved[j] = parameters[j].lower;
      if (moved[j] > parameters[j].upper) moved[j] = parameters[j].upper;
    }
    prior.examples.push_back(std::move(moved));
    if (example.fit->law_residual.scale > 0.0) {
      spreads.push_back(example.fit->law_residual.scale);
    }
  }
  const auto k = static_cast<Eigen::Index>(fits.size());
  Eigen::MatrixXd x(k, p);  // deviations from the mean; 0 where an example does not identify it
  Eigen::VectorXd sd(p);
  for (Eigen::Index j = 0; j < p; ++j) {
    const auto c = static_cast<std::size_t>(j);
    const ParameterInfo& info = parameters[c];
    std::vector<double> known;
    double own_variance = 0.0;  // of the examples' estimates themselves
    std::vector<bool> identified(fits.size());
    for (std::size_t e = 0; e < fits.size(); ++e) {
      const FittedParameter& fitted = fits[e]->parameters[c];
      identified[e] =
          fitted.standard_error.has_value() || fitted.at_bound != AtBound::kNo || fitted.fixed;
      if (!identified[e]) continue;
      known.push_back(to_fit_scale(info, prior.examples[e][c]));
      if (fitted.standard_error) {
        const double own = *fitted.standard_error / (info.lower > 0.0 ? fitted.value : 1.0);
        own_variance += own * own;
      }
    }
    if (known.size() < 2) {
      prior.mean[j] = to_fit_scale(info, info.start);
      sd[j] = std::numeric_limits<double>::infinity();  // the box decides below
    } else {
      const auto count = static_cast<double>(known.size());
      double sum = 0.0;
      for (const double value : known) sum += value;
      prior.mean[j] = sum / count;
      double squares = 0.0;
      for (const double value : known) squares += (value - prior.mean[j]) * (value - prior.mean[j]);
      // Between tables alone (moment estimate), then that of a new table about a mean of `count`.
      const double between = std::max(0.0, squares / (count - 1.0) - own_variance / count);
      sd[j] = std::sqrt(between + squares / (count - 1.0) / count);
    }
    // A box is what is known without any example; no prior is wider.
    const double box_sd =
        (to_fit_scale(info, info.upper) - to_fit_scale(info, info.lower)) / std::sqrt(12.0);
    sd[j] = std::max(std::min(sd[j], box_sd), kLeastPriorSd);
    for (Eigen::Index e = 0; e < k; ++e) {
      const auto row = static_cast<std::size_t>(e);
      x(e, j) = identified[row] && known.size() >= 2
                    ? (to_fit_scale(info, prior.examples[row][c]) - prior.mean[j]) / sd[j]
                    : 0.0;
    }
  }
  Eigen::MatrixXd correlation = Eigen::MatrixXd::Identity(p, p);
  if (k >= 3) {
    const double trust = static_cast<double>(k) / static_cast<double>(k + p);
    const Eigen::MatrixXd sample = x.transpose() * x / static_cast<double>(k - 1);
    correlation += trust * (sample - Eigen::MatrixXd(sample.diagonal().asDiagonal()));
  }
  prior.covariance = sd.asDiagonal() * correlation * sd.asDiagonal();
  prior.residual_scale = spreads.empty() ? kUnknownSpread : quantile(spreads, 0.5);
  return prior;
}

Eigen::MatrixXd log_gradients(const BoundLaw& law, const std::vector<ParameterInfo>& parameters,
                              std::span<const double> values, RowIndices rows) {
  const std::size_t p = parameters.size();
  std::vector<double> seconds(rows.size());
  std::vector<double> gradient(rows.size() * p);
  law.evaluate_with_gradient(values, rows, seconds, gradient);
  Eigen::MatrixXd result(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(p));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < p; ++j) {
      const double chain = parameters[j].lower > 0.0 ? values[j] : 1.0;
      result(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
          gradient[i * p + j] / seconds[i] * chain;
    }
  }
  return result;
}

std::vector<std::uint32_t> choose_rows(const BoundLaw& law, const FamilyPrior& prior,
                                       const std::vector<ParameterInfo>& parameters,
                                       RowIndices rows, std::size_t count, std::uint64_t seed) {
  // A few hundred candidates and targets span the table; more would only cost time.
  constexpr std::size_t kCandidates = 400;
  const std::vector<std::uint32_t> candidates = thin(rows, kCandidates, seed);
  std::vector<double> values;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    values.push_back(
        std::clamp(from_fit_scale(parameters[j], prior.mean[static_cast<Eigen::Index>(j)]),
                   parameters[j].lower, parameters[j].upper));
  }
  DesignProblem problem;
  problem.covariance = prior.covariance;
  problem.candidate_gradients = log_gradients(law, parameters, values, candidates);
  problem.candidate_costs = Eigen::VectorXd::Ones(problem.candidate_gradients.rows());
  problem.noise_variance = prior.residual_scale * prior.residual_scale;
  problem.target_gradients = problem.candidate_gradients;
  problem.max_measurements = count;
  std::vector<std::uint32_t> chosen;
  for (const DesignStep& step : greedy_design(problem)) {
    chosen.push_back(candidates[step.candidate]);
  }
  // Where the design sees nothing more to learn under the prior, spread the rest at random: the law
  // may be wrong in ways the prior does not know.
  for (const std::uint32_t row : thin(rows, std::min(rows.size(), 2 * count), seed + 1)) {
    if (chosen.size() >= count) break;
    if (std::find(chosen.begin(), chosen.end(), row) == chosen.end()) chosen.push_back(row);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

namespace {

/// One normal of the prior: the pooled one, or one about an example.
struct Component {
  GaussianPrior prior;
  double log_determinant = 0.0;  ///< half of it, of the covariance
  std::vector<double> start;
};

/// The pooled normal, and a normal about each example with the pooled covariance narrowed by
/// Silverman's rule, h^2 = K^(-2 / (p + 4)): families hold kernels of several makes, and a new
/// table is often much like one of them.
std::vector<Component> components_of(const FamilyPrior& prior,
                                     const std::vector<ParameterInfo>& parameters) {
  std::vector<Component> components(1);
  const Eigen::MatrixXd root = inverse_root(prior.covariance);
  components[0].prior = {prior.mean, root};
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    components[0].start.push_back(
        from_fit_scale(parameters[j], prior.mean[static_cast<Eigen::Index>(j)]));
  }
  const auto p = static_cast<double>(parameters.size());
  const double count = static_cast<double>(prior.examples.size());
  const double narrow = std::pow(std::max(1.0, count), -1.0 / (p + 4.0));
  for (const std::vector<double>& example : prior.examples) {
    Component component;
    component.prior.mean = prior.mean;
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      const ParameterInfo& info = parameters[j];
      component.prior.mean[static_cast<Eigen::Index>(j)] =
          to_fit_scale(info, std::clamp(example[j], info.lower, info.upper));
    }
    component.prior.precision_root = root / narrow;
    component.log_determinant = p * std::log(narrow);
    component.start = example;
    components.push_back(std::move(component));
  }
  return components;
}

/// Rows that the fit has bent itself to: trace of J C J^T / variance over the rows, at most n.
double effective_parameters(const BoundLaw& law, const std::vector<ParameterInfo>& parameters,
                            const LeastSquaresSummary& summary, RowIndices rows, double variance) {
  std::vector<double> values;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    values.push_back(from_fit_scale(parameters[j], summary.x[static_cast<Eigen::Index>(j)]));
  }
  const Eigen::MatrixXd g = log_gradients(law, parameters, values, rows);
  const double trace = (g * summary.covariance).cwiseProduct(g).sum() / variance;
  return std::min(trace, static_cast<double>(rows.size()));
}

}  // namespace

SeriesFit fit_with_prior(const Family& family, const SeriesKey& key, const LawDevice& device,
                         std::span<const Record> records, const BoundLaw& law, RowIndices rows,
                         const FamilyPrior& prior, const FitOptions& options) {
  const std::vector<ParameterInfo> parameters = family.parameters(key, device);
  std::vector<Component> components = components_of(prior, parameters);
  LeastSquaresProblem problem;
  problem.num_residuals = static_cast<Eigen::Index>(rows.size());
  problem.evaluate = log_residuals(law, records, {rows.begin(), rows.end()}, parameters);
  LeastSquaresOptions solver;
  solver.loss = Loss::kHuber;
  solver.loss_scale = kHuberEfficiency;  // weighted residuals have unit variance
  solver.max_iterations = options.max_iterations;
  solver.cost_tolerance = 1e-6;
  solver.step_tolerance = 1e-7;

  double variance = prior.residual_scale * prior.residual_scale;
  LeastSquaresSummary best;
  std::vector<double> residuals(rows.size());
  for (int pass = 0; pass < 3; ++pass) {
    problem.weights = Eigen::VectorXd::Constant(problem.num_residuals, 1.0 / variance);
    double best_cost = std::numeric_limits<double>::infinity();
    std::size_t chosen = 0;
    for (std::size_t c = 0; c < components.size(); ++c) {
      problem.unknowns = make_unknowns(parameters, components[c].start);
      problem.prior = components[c].prior;
      LeastSquaresSummary summary = solve(problem, solver);
      const double cost = summary.cost + components[c].log_determinant;
      if (summary.termination == Termination::kInvalidStart || !(cost < best_cost)) continue;
      best_cost = cost;
      chosen = c;
      best = std::move(summary);
    }
    if (!std::isfinite(best_cost)) break;
    Eigen::VectorXd r(problem.num_residuals);
    problem.evaluate(best.x, r, nullptr);
    std::copy(r.begin(), r.end(), residuals.begin());
    // Rows beyond the loss scale count as if they were on it (Huber's proposal 2).
    double squares = 0.0;
    for (const double value : residuals) {
      const double bound = kHuberEfficiency * std::sqrt(variance);
      squares += std::min(value * value, bound * bound);
    }
    const double used = effective_parameters(law, parameters, best, rows, variance);
    variance = (kPriorRowsForSpread * prior.residual_scale * prior.residual_scale + squares) /
               std::max(kPriorRowsForSpread,
                        kPriorRowsForSpread + static_cast<double>(rows.size()) - used);
    Component winner = std::move(components[chosen]);
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      winner.start[j] = from_fit_scale(parameters[j], best.x[static_cast<Eigen::Index>(j)]);
    }
    components.clear();
    components.push_back(std::move(winner));
  }
  SeriesFit fit;
  fit.key = key;
  fit.family = family.name;
  fit.num_rows = rows.size();
  fit.num_groups = rows.size();
  if (best.x.size() == 0) {
    best.x = prior.mean;
    best.covariance = prior.covariance;
    best.standard_errors.assign(parameters.size(), std::nullopt);
    fit.warnings.push_back("no start gave a defined time; the prior is returned");
  }
  fit.converged = best.converged;
  fit.termination = best.termination;
  fit.covariance = best.covariance;
  fit.condition_number = best.condition_number;
  fit.null_directions = best.null_directions;
  fill_parameters(parameters, best, fit);
  // Few rows cannot show a tail; four degrees of freedom is what the large tables have.
  fit.residual = {std::sqrt(variance), 4.0, 0.0};
  fit.law_residual = fit.residual;
  return fit;
}

}  // namespace fulcrum::calibrate
