#include "calibrate/residual_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace fulcrum::calibrate {
namespace {

/// Continued fraction of the incomplete beta function (Lentz), x < (a+1)/(a+b+2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1.0;
  double d = 1.0 - (a + b) * x / (a + 1.0);
  d = 1.0 / (std::abs(d) < kTiny ? kTiny : d);
  double f = d;
  for (int i = 1; i <= 300; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 + even * d;
    c = 1.0 + even / c;
    d = 1.0 / (std::abs(d) < kTiny ? kTiny : d);
    c = std::abs(c) < kTiny ? kTiny : c;
    f *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 + odd * d;
    c = 1.0 + odd / c;
    d = 1.0 / (std::abs(d) < kTiny ? kTiny : d);
    c = std::abs(c) < kTiny ? kTiny : c;
    const double step = d * c;
    f *= step;
    if (std::abs(step - 1.0) < 1e-15) break;
  }
  return f;
}

/// Regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

}  // namespace

double student_t_cdf(double t, double degrees_of_freedom) {
  const double x = degrees_of_freedom / (degrees_of_freedom + t * t);
  const double tail = 0.5 * incomplete_beta(0.5 * degrees_of_freedom, 0.5, x);
  return t > 0.0 ? 1.0 - tail : tail;
}

double student_t_quantile(double probability, double degrees_of_freedom) {
  if (probability < 0.5) return -student_t_quantile(1.0 - probability, degrees_of_freedom);
  double low = 0.0;
  double high = 1.0;
  while (student_t_cdf(high, degrees_of_freedom) < probability && high < 1e12) high *= 2.0;
  for (int i = 0; i < 100 && high - low > 1e-12 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (student_t_cdf(middle, degrees_of_freedom) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double quantile(std::span<const double> values, double q) {
  std::vector<double> sorted(values.begin(), values.end());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto index = static_cast<std::size_t>(position);
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(sorted.begin(), at, sorted.end());
  const double low = *at;
  if (index + 1 >= sorted.size()) return low;
  const double high = *std::min_element(at + 1, sorted.end());
  return low + (position - static_cast<double>(index)) * (high - low);
}

ResidualModel fit_residual_model(std::span<const double> residuals, double inflation) {
  ResidualModel model;
  if (residuals.empty()) return model;
  model.bias = quantile(residuals, 0.5);
  std::vector<double> distance;
  distance.reserve(residuals.size());
  for (const double r : residuals) distance.push_back(std::abs(r - model.bias));
  const double half = quantile(distance, 0.5);
  const double most = quantile(distance, 0.9);
  // Degrees of freedom whose ratio of the two points is nearest; below 1.5 the scale would follow
  // a handful of rows, above 30 the distribution is normal.
  constexpr std::array<double, 8> kFreedom = {1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 30.0};
  double nearest = std::numeric_limits<double>::infinity();
  for (const double freedom : kFreedom) {
    const double ratio = student_t_quantile(0.95, freedom) / student_t_quantile(0.75, freedom);
    const double miss = std::abs(std::log(ratio) - std::log(most / std::max(half, 1e-12 * most)));
    if (miss < nearest) {
      nearest = miss;
      model.degrees_of_freedom = freedom;
    }
  }
  model.scale = inflation * most / student_t_quantile(0.95, model.degrees_of_freedom);
  return model;
}

double half_width(const ResidualModel& model, double probability, double extra_sd) {
  return student_t_quantile(0.5 + 0.5 * probability, model.degrees_of_freedom) *
         std::hypot(model.scale, extra_sd);
}

}  // namespace fulcrum::calibrate
