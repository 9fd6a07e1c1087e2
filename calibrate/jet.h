// Forward-mode dual numbers: a value and its gradient with respect to N parameters.
// Laws are templates on Real; with Real = Jet<N> one evaluation gives the exact Jacobian row.
//
// Comparisons look at values only, so min, max and branches take the derivative of the side that
// was chosen; at a tie the first operand's.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace fulcrum::calibrate {

template <std::size_t N>
struct Jet {
  double value = 0.0;
  std::array<double, N> gradient{};

  Jet() = default;
  Jet(double v) : value(v) {}  // NOLINT: constants mix freely with jets, as with double

  /// Independent variable number `index`.
  static Jet variable(double v, std::size_t index) {
    Jet x(v);
    x.gradient[index] = 1.0;
    return x;
  }

  Jet& operator+=(const Jet& b) { return *this = *this + b; }
  Jet& operator-=(const Jet& b) { return *this = *this - b; }
  Jet& operator*=(const Jet& b) { return *this = *this * b; }
  Jet& operator/=(const Jet& b) { return *this = *this / b; }

  /// f(x) with f'(x) = slope.
  Jet chain(double f, double slope) const {
    Jet r;
    r.value = f;
    for (std::size_t i = 0; i < N; ++i) r.gradient[i] = slope * gradient[i];
    return r;
  }

  friend Jet operator-(const Jet& a) { return a.chain(-a.value, -1.0); }
  friend Jet operator+(const Jet& a, const Jet& b) {
    Jet r;
    r.value = a.value + b.value;
    for (std::size_t i = 0; i < N; ++i) r.gradient[i] = a.gradient[i] + b.gradient[i];
    return r;
  }
  friend Jet operator-(const Jet& a, const Jet& b) {
    Jet r;
    r.value = a.value - b.value;
    for (std::size_t i = 0; i < N; ++i) r.gradient[i] = a.gradient[i] - b.gradient[i];
    return r;
  }
  friend Jet operator*(const Jet& a, const Jet& b) {
    Jet r;
    r.value = a.value * b.value;
    for (std::size_t i = 0; i < N; ++i) {
      r.gradient[i] = a.gradient[i] * b.value + a.value * b.gradient[i];
    }
    return r;
  }
  friend Jet operator/(const Jet& a, const Jet& b) {
    Jet r;
    const double inverse = 1.0 / b.value;
    r.value = a.value * inverse;
    for (std::size_t i = 0; i < N; ++i) {
      r.gradient[i] = (a.gradient[i] - r.value * b.gradient[i]) * inverse;
    }
    return r;
  }
  // Jet with double: the general form would multiply by a zero gradient.
  friend Jet operator+(const Jet& a, double b) { return a.chain(a.value + b, 1.0); }
  friend Jet operator+(double a, const Jet& b) { return b.chain(a + b.value, 1.0); }
  friend Jet operator-(const Jet& a, double b) { return a.chain(a.value - b, 1.0); }
  friend Jet operator-(double a, const Jet& b) { return b.chain(a - b.value, -1.0); }
  friend Jet operator*(const Jet& a, double b) { return a.chain(a.value * b, b); }
  friend Jet operator*(double a, const Jet& b) { return b.chain(a * b.value, a); }
  friend Jet operator/(const Jet& a, double b) { return a.chain(a.value / b, 1.0 / b); }
  friend Jet operator/(double a, const Jet& b) {
    const double f = a / b.value;
    return b.chain(f, -f / b.value);
  }

  friend bool operator<(const Jet& a, const Jet& b) { return a.value < b.value; }
  friend bool operator>(const Jet& a, const Jet& b) { return a.value > b.value; }
  friend bool operator<=(const Jet& a, const Jet& b) { return a.value <= b.value; }
  friend bool operator>=(const Jet& a, const Jet& b) { return a.value >= b.value; }

  // Found by argument-dependent lookup after `using std::exp;` etc. in the law.
  friend Jet exp(const Jet& a) {
    const double f = std::exp(a.value);
    return a.chain(f, f);
  }
  friend Jet log(const Jet& a) { return a.chain(std::log(a.value), 1.0 / a.value); }
  friend Jet log2(const Jet& a) {
    return a.chain(std::log2(a.value), 1.4426950408889634 / a.value);  // 1 / ln 2
  }
  friend Jet log1p(const Jet& a) { return a.chain(std::log1p(a.value), 1.0 / (1.0 + a.value)); }
  friend Jet expm1(const Jet& a) {
    const double f = std::expm1(a.value);
    return a.chain(f, f + 1.0);
  }
  friend Jet sqrt(const Jet& a) {
    const double f = std::sqrt(a.value);
    return a.chain(f, 0.5 / f);
  }
  friend Jet cbrt(const Jet& a) {
    const double f = std::cbrt(a.value);
    return a.chain(f, f / (3.0 * a.value));
  }
  friend Jet pow(const Jet& a, double b) {
    return a.chain(std::pow(a.value, b), b * std::pow(a.value, b - 1.0));
  }
  /// a > 0.
  friend Jet pow(const Jet& a, const Jet& b) {
    const double f = std::pow(a.value, b.value);
    const double log_a = std::log(a.value);
    Jet r;
    r.value = f;
    for (std::size_t i = 0; i < N; ++i) {
      r.gradient[i] = f * (b.gradient[i] * log_a + b.value * a.gradient[i] / a.value);
    }
    return r;
  }
  /// a > 0.
  friend Jet pow(double a, const Jet& b) {
    const double f = std::pow(a, b.value);
    return b.chain(f, f * std::log(a));
  }
  friend Jet sin(const Jet& a) { return a.chain(std::sin(a.value), std::cos(a.value)); }
  friend Jet cos(const Jet& a) { return a.chain(std::cos(a.value), -std::sin(a.value)); }
  friend Jet atan(const Jet& a) {
    return a.chain(std::atan(a.value), 1.0 / (1.0 + a.value * a.value));
  }
  friend Jet tanh(const Jet& a) {
    const double f = std::tanh(a.value);
    return a.chain(f, 1.0 - f * f);
  }
  friend Jet erf(const Jet& a) {
    return a.chain(std::erf(a.value), 1.1283791670955126 * std::exp(-a.value * a.value));
  }
  friend Jet abs(const Jet& a) { return a.value < 0.0 ? -a : a; }
  friend Jet fabs(const Jet& a) { return abs(a); }
  friend Jet min(const Jet& a, const Jet& b) { return b.value < a.value ? b : a; }
  friend Jet max(const Jet& a, const Jet& b) { return a.value < b.value ? b : a; }
  friend Jet fmin(const Jet& a, const Jet& b) { return min(a, b); }
  friend Jet fmax(const Jet& a, const Jet& b) { return max(a, b); }
  /// Piecewise constant: zero gradient.
  friend Jet ceil(const Jet& a) { return Jet(std::ceil(a.value)); }
  friend Jet floor(const Jet& a) { return Jet(std::floor(a.value)); }
  friend Jet round(const Jet& a) { return Jet(std::round(a.value)); }
};

/// The plain number inside: for branches and tables that must not carry a derivative.
inline double value_of(double x) { return x; }
template <std::size_t N>
double value_of(const Jet<N>& x) {
  return x.value;
}

}  // namespace fulcrum::calibrate
