// Spread of log(measured / predicted) about a fitted law: Student's t, because the tables have
// heavy tails that a normal distribution of the same width would call impossible.
#pragma once

#include <span>

namespace fulcrum::calibrate {

struct ResidualModel {
  double scale = 0.0;  ///< of the t distribution, in log units
  double degrees_of_freedom = 30.0;
  double bias = 0.0;  ///< median residual, log(measured / predicted)
};

/// Quantile of Student's t. 0 < probability < 1, degrees_of_freedom > 0. Absolute error below 1e-9
/// for 1 <= degrees_of_freedom (bisection on the distribution function).
double student_t_quantile(double probability, double degrees_of_freedom);

/// P(T <= t).
double student_t_cdf(double t, double degrees_of_freedom);

/// Matches the 50 % and 90 % points of |residual - median|. `inflation` multiplies the scale for
/// the freedom that the fit has used up. Scale 0 if all residuals are equal or there are none.
ResidualModel fit_residual_model(std::span<const double> residuals, double inflation = 1.0);

/// Half width of the central interval of the given probability when a normal error of standard
/// deviation `extra_sd` is added (scales add in squares).
double half_width(const ResidualModel& model, double probability, double extra_sd);

/// q-quantile (0..1) of values, linear between order statistics. Values must not be empty.
double quantile(std::span<const double> values, double q);

}  // namespace fulcrum::calibrate
