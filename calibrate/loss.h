// Robust loss functions. With z = weighted residual / scale the cost of a row is scale^2 * rho(z).
// All three agree with the squared loss z^2/2 at the origin.
#pragma once

#include <cmath>

namespace fulcrum::calibrate {

enum class Loss {
  kSquared,  ///< rho = z^2/2
  kHuber,    ///< quadratic to |z| = 1, linear beyond; convex
  kCauchy,   ///< rho = log(1 + z^2)/2; redescending
  kTukey,    ///< biweight: rows beyond |z| = 1 have no influence; needs a good start
};

/// rho(z), the influence psi = rho'(z), and psi'(z) for the covariance of an M-estimate.
struct LossValue {
  double rho = 0.0;
  double psi = 0.0;
  double psi_slope = 0.0;
};

inline LossValue evaluate_loss(Loss loss, double z) {
  const double z2 = z * z;
  switch (loss) {
    case Loss::kSquared:
      break;
    case Loss::kHuber:
      if (std::abs(z) <= 1.0) break;
      return {std::abs(z) - 0.5, z > 0.0 ? 1.0 : -1.0, 0.0};
    case Loss::kCauchy: {
      const double inverse = 1.0 / (1.0 + z2);
      return {0.5 * std::log1p(z2), z * inverse, (1.0 - z2) * inverse * inverse};
    }
    case Loss::kTukey: {
      if (std::abs(z) >= 1.0) return {1.0 / 6.0, 0.0, 0.0};
      const double u = 1.0 - z2;
      return {(1.0 - u * u * u) / 6.0, z * u * u, u * (1.0 - 5.0 * z2)};
    }
  }
  return {0.5 * z2, z, 1.0};
}

}  // namespace fulcrum::calibrate
