// A bound law as a least-squares problem: fit scale, log-time residuals, chain rule.
#pragma once

#include <vector>

#include "calibrate/family.h"
#include "calibrate/fit.h"
#include "calibrate/least_squares.h"

namespace fulcrum::calibrate {

/// Huber's k: 95 % efficient for normal errors (Huber 1964).
inline constexpr double kHuberEfficiency = 1.345;

/// Fit scale: log for parameters with a positive lower bound, else the value itself.
double to_fit_scale(const ParameterInfo& info, double value);
double from_fit_scale(const ParameterInfo& info, double x);

/// Unknowns in fit scale, starting from `start` (parameter units, clamped into the box).
std::vector<Unknown> make_unknowns(const std::vector<ParameterInfo>& parameters,
                                   const std::vector<double>& start);

/// Residuals log(predicted / measured) of `rows`, with Jacobian. Keeps references: `law` and
/// `records` must outlive the function.
ResidualFunction log_residuals(const BoundLaw& law, std::span<const Record> records,
                               std::vector<std::uint32_t> rows,
                               std::vector<ParameterInfo> parameters);

/// Lets the boxes bound the errors of a solution: each box counts as a measurement of its middle
/// with the variance of a uniform distribution, width^2/12. Where the rows determine a parameter
/// this changes nothing; where they do not, its error ends at the box instead of growing without
/// end. Returns the names of the parameters about which the rows say less than their boxes.
std::vector<std::string> bound_errors(const std::vector<Unknown>& unknowns,
                                      LeastSquaresSummary& summary);

/// Copies a solution into fit.parameters, in parameter units.
void fill_parameters(const std::vector<ParameterInfo>& parameters,
                     const LeastSquaresSummary& summary, SeriesFit& fit);

}  // namespace fulcrum::calibrate
