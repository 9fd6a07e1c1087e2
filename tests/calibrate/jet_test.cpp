#include "calibrate/jet.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/random.h"

namespace fulcrum::calibrate {
namespace {

using J = Jet<2>;

/// Value and both derivatives against central differences at random positive points.
template <class F>
void expect_derivatives(F f, const char* name) {
  Random random(1);
  for (int trial = 0; trial < 50; ++trial) {
    const double a = 0.2 + 2.0 * random.uniform();
    const double b = 0.2 + 2.0 * random.uniform();
    const J value = f(J::variable(a, 0), J::variable(b, 1));
    constexpr double kStep = 1e-6;
    const double da = (f(J(a + kStep), J(b)).value - f(J(a - kStep), J(b)).value) / (2.0 * kStep);
    const double db = (f(J(a), J(b + kStep)).value - f(J(a), J(b - kStep)).value) / (2.0 * kStep);
    const double tolerance = 1e-7 * (1.0 + std::abs(da) + std::abs(db));
    EXPECT_NEAR(value.gradient[0], da, tolerance) << name;
    EXPECT_NEAR(value.gradient[1], db, tolerance) << name;
  }
}

TEST(Jet, EveryOperationHasTheDerivativeOfItsCentralDifference) {
  expect_derivatives([](J a, J b) { return a * b + a / b - b; }, "arithmetic");
  expect_derivatives([](J a, J b) { return 2.0 * a + b * 3.0 - 1.0 / a + b / 4.0 - (5.0 - b); },
                     "with constants");
  expect_derivatives([](J a, J b) { return exp(a) * log(b) + log2(a) + log1p(b) + expm1(a); },
                     "exponentials");
  expect_derivatives([](J a, J b) { return pow(a, b) + pow(a, 2.5) + pow(3.0, b); }, "powers");
  expect_derivatives([](J a, J b) { return sqrt(a) + cbrt(b) + tanh(a) + erf(b) + atan(a); },
                     "functions");
  expect_derivatives([](J a, J b) { return sin(a) * cos(b) + abs(a - b); }, "trigonometry");
  expect_derivatives([](J a, J b) { return max(a, b) * min(a, b * b); }, "choices");
}

TEST(Jet, CeilingsCarryNoDerivative) {
  const J x = ceil(J::variable(1.5, 0));
  EXPECT_EQ(x.value, 2.0);
  EXPECT_EQ(x.gradient[0], 0.0);
}

TEST(Jet, ATieOfMaxTakesTheFirstOperand) {
  const J m = max(J::variable(1.0, 0), J::variable(1.0, 1));
  EXPECT_EQ(m.gradient[0], 1.0);
  EXPECT_EQ(m.gradient[1], 0.0);
}

}  // namespace
}  // namespace fulcrum::calibrate
