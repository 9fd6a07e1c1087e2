#include "calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "calibrate/correction.h"
#include "calibrate/law_problem.h"
#include "calibrate/score.h"
#include "calibrate/split.h"

namespace fulcrum::calibrate {
namespace {

/// Standard deviation over median absolute deviation of a normal distribution.
constexpr double kMadToSd = 1.4826;
/// First scale of the loss in log time, before any residual is known: a tenth of an e-fold.
constexpr double kFirstLossScale = 0.1;
/// Spread of a law that nothing has checked: half an e-fold. bytes / (0.8 bandwidth) + 3 us, the
/// usual unchecked formula, misses public tables by 37 to 98 % at the 90th percentile.
constexpr double kUncheckedSpread = 0.5;
/// No table repeats better than this (0.2 %): a smaller scale would chase rounding of the times.
constexpr double kLeastLossScale = 0.002;
/// Fewer rows say nothing about extrapolation.
constexpr std::size_t kLeastRowsBeyond = 5;
/// Rows of the fit that extrapolation is tried with.
constexpr std::size_t kMaxRowsBeyond = 800;

std::vector<double> starts_of(const std::vector<ParameterInfo>& parameters) {
  std::vector<double> start;
  for (const ParameterInfo& info : parameters) start.push_back(info.start);
  return start;
}

std::vector<double> residuals_at(const LeastSquaresProblem& problem, const Eigen::VectorXd& x) {
  Eigen::VectorXd r(problem.num_residuals);
  if (!problem.evaluate(x, r, nullptr)) return {};
  return {r.begin(), r.end()};
}

double loss_scale(std::span<const double> residuals) {
  std::vector<double> distance(residuals.begin(), residuals.end());
  for (double& d : distance) d = std::abs(d);
  return std::max(kLeastLossScale, kHuberEfficiency * kMadToSd * quantile(distance, 0.5));
}

LeastSquaresProblem make_problem(const BoundLaw& law, std::span<const Record> records,
                                 std::vector<std::uint32_t> rows,
                                 const std::vector<ParameterInfo>& parameters,
                                 const std::vector<double>& start) {
  LeastSquaresProblem problem;
  problem.unknowns = make_unknowns(parameters, start);
  problem.num_residuals = static_cast<Eigen::Index>(rows.size());
  problem.evaluate = log_residuals(law, records, std::move(rows), parameters);
  return problem;
}

/// Values at the end of a multi-start on few rows.
std::vector<double> choose_start(const BoundLaw& law, std::span<const Record> records,
                                 RowIndices rows, const std::vector<ParameterInfo>& parameters,
                                 const FitOptions& options) {
  const LeastSquaresProblem problem =
      make_problem(law, records, thin(rows, options.max_start_rows, options.seed), parameters,
                   starts_of(parameters));
  LeastSquaresOptions search;
  search.loss = Loss::kHuber;
  search.loss_scale = kFirstLossScale;
  // Small series are cheap to search and have the fewest rows to tell minima apart.
  search.num_starts = std::clamp(options.start_row_budget / static_cast<int>(problem.num_residuals),
                                 options.num_starts, 4 * options.num_starts);
  search.short_iterations = 8;
  search.num_finished = 2;
  search.max_iterations = options.max_iterations;
  search.cost_tolerance = 1e-4;
  search.step_tolerance = 1e-6;
  search.seed = options.seed;
  const LeastSquaresSummary summary = solve(problem, search);
  std::vector<double> start = starts_of(parameters);
  if (summary.termination == Termination::kInvalidStart) return start;
  for (std::size_t j = 0; j < start.size(); ++j) {
    start[j] = from_fit_scale(parameters[j], summary.x[static_cast<Eigen::Index>(j)]);
  }
  return start;
}

/// Numbers groups of the chosen rows 0..G-1.
std::vector<std::uint32_t> cluster_numbers(const Groups& groups, RowIndices rows,
                                           std::size_t& count) {
  constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> number(groups.size(), kNone);
  std::vector<std::uint32_t> clusters;
  count = 0;
  for (const std::uint32_t i : rows) {
    std::uint32_t& n = number[groups.of_row[i]];
    if (n == kNone) n = static_cast<std::uint32_t>(count++);
    clusters.push_back(n);
  }
  return clusters;
}

/// Learns the correction of a fitted law; returns log(measured / predicted) on shapes held out.
std::vector<double> correct(const BoundLaw& law, std::span<const Record> records,
                            const Groups& groups, RowIndices rows, const FitOptions& options,
                            SeriesFit& fit) {
  const std::vector<std::uint32_t> used = thin(rows, options.max_correction_rows, options.seed);
  std::vector<double> seconds(used.size());
  law.evaluate(values(fit), used, seconds);
  std::vector<double> residuals;
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i < used.size(); ++i) {
    residuals.push_back(std::log(records[used[i]].latency_seconds / seconds[i]));
    hashes.push_back(groups.hash[groups.of_row[used[i]]]);
  }
  CorrectionFit corrected = fit_correction(law, used, residuals, hashes, options.correction_noise);
  fit.correction_noise = corrected.noise_ratio;
  fit.correction = std::move(corrected.correction);
  return std::move(corrected.held_out_residuals);
}

/// Largest of each size in BoundLaw::reach.
std::vector<double> largest_sizes(const BoundLaw& law, RowIndices rows) {
  std::vector<double> largest(law.num_reach, 0.0);
  for (const std::uint32_t row : rows) {
    for (std::size_t i = 0; i < law.num_reach; ++i) {
      largest[i] = std::max(largest[i], law.reach[row * law.num_reach + i]);
    }
  }
  return largest;
}

/// Scale of the spread beyond the fitted sizes, in units of `spread`'s t: the rows above half of
/// the largest fitted size of any kind are predicted by a fit to the others.
double scale_beyond(const Family& family, const SeriesFit& part, const LawDevice& device,
                    std::span<const Record> records, const BoundLaw& law, RowIndices rows,
                    FitOptions options) {
  SeriesFit half_sizes = part;
  for (double& size : half_sizes.reach) size *= 0.5;
  std::vector<std::uint32_t> near, far;
  for (const std::uint32_t row : rows) {
    (is_beyond(half_sizes, law, row) ? far : near).push_back(row);
  }
  if (far.size() < kLeastRowsBeyond || near.size() < 2 * part.parameters.size()) {
    return part.residual.scale;
  }
  options.max_rows = kMaxRowsBeyond;
  options.max_correction_rows = kMaxRowsBeyond;
  options.correction_noise = part.correction_noise;
  const SeriesFit fit =
      fit_rows(family, part.key, device, records, law, near, options, values(part));
  std::vector<double> misses;
  for (const TimePrediction& p : predict(fit, law, far)) misses.push_back(p.seconds);
  for (std::size_t i = 0; i < far.size(); ++i) {
    misses[i] =
        std::abs(std::log(records[far[i]].latency_seconds / misses[i]) - part.residual.bias);
  }
  return std::max(
      part.residual.scale,
      quantile(misses, 0.9) / student_t_quantile(0.95, part.residual.degrees_of_freedom));
}

void add_design_warnings(std::span<const Record> records, RowIndices rows, std::size_t num_free,
                         SeriesFit& fit) {
  if (rows.size() <= num_free) {
    fit.warnings.push_back(std::to_string(rows.size()) + " rows for " + std::to_string(num_free) +
                           " parameters: standard errors are unknown");
  }
  const bool all_equal = std::all_of(rows.begin(), rows.end(), [&](std::uint32_t i) {
    return records[i].latency_seconds == records[rows.front()].latency_seconds;
  });
  if (rows.size() > 1 && all_equal) fit.warnings.push_back("all rows have the same time");
  if (!fit.converged) fit.warnings.push_back(std::string("fit: ") + to_string(fit.termination));
  std::string alone;
  for (const NullDirection& direction : fit.null_directions) {
    if (direction.names.size() == 1) {
      alone += " " + direction.names.front();
      continue;
    }
    std::string names;
    for (const std::string& name : direction.names) names += " " + name;
    fit.warnings.push_back("only in combination identified by these rows:" + names);
  }
  if (!alone.empty()) fit.warnings.push_back("not identified by these rows:" + alone);
}

}  // namespace

std::vector<double> values(const SeriesFit& fit) {
  std::vector<double> v;
  for (const FittedParameter& p : fit.parameters) v.push_back(p.value);
  return v;
}

SeriesFit fit_rows(const Family& family, const SeriesKey& key, const LawDevice& device,
                   std::span<const Record> records, const BoundLaw& law, RowIndices rows,
                   const FitOptions& options, std::optional<std::vector<double>> start) {
  const std::vector<ParameterInfo> parameters = family.parameters(key, device);
  SeriesFit fit;
  fit.key = key;
  fit.family = family.name;
  fit.num_rows = rows.size();
  if (!start) start = choose_start(law, records, rows, parameters, options);

  std::vector<std::uint32_t> used = thin(rows, options.max_rows, options.seed);
  const Groups groups = group_by_shape(family, records);
  LeastSquaresProblem problem = make_problem(law, records, used, parameters, *start);
  problem.clusters = cluster_numbers(groups, used, fit.num_groups);
  LeastSquaresOptions polish;
  polish.loss = Loss::kHuber;
  polish.max_iterations = options.max_iterations;
  polish.step_tolerance = 1e-7;
  polish.seed = options.seed;
  Eigen::VectorXd x(static_cast<Eigen::Index>(parameters.size()));
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    x[static_cast<Eigen::Index>(j)] = problem.unknowns[j].start;
  }
  // The scale of the loss follows the residuals: a second pass with the scale the first has found.
  LeastSquaresSummary summary;
  std::vector<double> residuals = residuals_at(problem, x);
  for (int pass = 0; pass < 2; ++pass) {
    polish.cost_tolerance = pass == 0 ? 1e-4 : 1e-5;
    polish.loss_scale = residuals.empty() ? kFirstLossScale : loss_scale(residuals);
    summary = solve(problem, polish);
    if (summary.termination == Termination::kInvalidStart) break;
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      problem.unknowns[j].start = summary.x[static_cast<Eigen::Index>(j)];
    }
    residuals = residuals_at(problem, summary.x);
  }
  const std::vector<std::string> weak = summary.termination == Termination::kInvalidStart
                                            ? std::vector<std::string>{}
                                            : bound_errors(problem.unknowns, summary);
  fit.converged = summary.converged;
  fit.termination = summary.termination;
  fit.condition_number = summary.condition_number;
  fit.null_directions = summary.null_directions;
  if (summary.termination == Termination::kInvalidStart) summary.x = x;
  fit.covariance = summary.covariance.size() > 0 ? summary.covariance
                                                 : Eigen::MatrixXd::Zero(x.size(), x.size());
  fill_parameters(parameters, summary, fit);

  for (double& r : residuals) r = -r;  // log(measured / law)
  const auto num_free = static_cast<std::size_t>(std::count_if(
      fit.parameters.begin(), fit.parameters.end(),
      [](const FittedParameter& p) { return !p.fixed && p.at_bound == AtBound::kNo; }));
  // Freedom used up: rows of a shape share an error, so the groups count, not the rows, unless
  // there are fewer groups than parameters.
  const double freedom = static_cast<double>(
      fit.num_groups > 2 * num_free ? fit.num_groups : std::max(used.size(), 2 * num_free + 1));
  const double inflation = std::sqrt(freedom / (freedom - static_cast<double>(num_free)));
  fit.reach = largest_sizes(law, rows);
  fit.law_residual = fit_residual_model(residuals, inflation);
  fit.residual = fit.law_residual;
  if (options.corrects && !residuals.empty() && fit.num_groups > 1) {
    const std::vector<double> left = correct(law, records, groups, rows, options, fit);
    if (!fit.correction.empty()) fit.residual = fit_residual_model(left, inflation);
  }
  add_design_warnings(records, rows, num_free, fit);
  if (!weak.empty()) {
    std::string text = "the rows say less than the bounds about:";
    for (const std::string& name : weak) text += " " + name;
    fit.warnings.push_back(std::move(text));
  }
  return fit;
}

SeriesFit fit_series(const Family& family, const SeriesKey& key, const LawDevice& device,
                     std::span<const Record> records, const FitOptions& options) {
  const BoundLaw law = family.bind(key, device, records);
  std::vector<std::uint32_t> all(records.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<bool> frontier = family.frontier(records);
  std::vector<std::uint32_t> outside;
  for (const std::uint32_t i : all) {
    if (frontier[i]) outside.push_back(i);
  }
  const Groups groups = group_by_shape(family, records);
  const std::vector<Fold> folds =
      make_folds(groups, frontier, options.holdout_fraction, options.min_rows_for_single_holdout,
                 options.num_folds, options.seed);

  ErrorCollector inside_errors, outside_errors;
  std::optional<std::vector<double>> start;
  FitOptions part_options = options;
  std::optional<ResidualModel> spread;
  double beyond = 0.0;
  for (const Fold& fold : folds) {
    if (fold.fitted.empty()) continue;
    SeriesFit part = fit_rows(family, key, device, records, law, fold.fitted, part_options, start);
    // One number that the first fold chose without its own held-out shapes; the others take it.
    part_options.correction_noise = part.correction_noise;
    if (!spread) {
      spread = part.residual;
      beyond = scale_beyond(family, part, device, records, law, fold.fitted, options);
    }
    part.residual = *spread;  // later folds did not cross-validate theirs
    part.scale_beyond = beyond;
    inside_errors.add(part, law, records, fold.held_out);
    if (!start) outside_errors.add(part, law, records, outside);
    start = values(part);  // later folds and the last fit begin where this one ended
  }
  if (inside_errors.residuals().size() < kLeastRowsForSpread) part_options = options;
  SeriesFit fit = fit_rows(family, key, device, records, law, all, part_options, start);
  fit.fitted = score(fit, law, records, all);
  fit.inside = inside_errors.statistics();
  fit.outside = outside_errors.statistics();
  if (!fit.correction.empty()) {
    fit.inside_law = inside_errors.law_statistics();
    fit.outside_law = outside_errors.law_statistics();
  }
  if (!fit.inside) {
    fit.residual.scale = std::max(fit.residual.scale, kUncheckedSpread);
    fit.law_residual = fit.residual;
    fit.warnings.push_back("no shape could be held out: the law's error here is not known");
  } else if (inside_errors.residuals().size() >= kLeastRowsForSpread) {
    fit.residual = fit_residual_model(inside_errors.residuals());
    fit.law_residual = fit_residual_model(inside_errors.law_residuals());
  }
  fit.scale_beyond = std::max(beyond, fit.residual.scale);
  return fit;
}

}  // namespace fulcrum::calibrate
