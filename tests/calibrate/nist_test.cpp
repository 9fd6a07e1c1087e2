#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/calibrate/nist_problems.h"

namespace fulcrum::calibrate {
namespace {

/// Agreeing decimal digits (NIST's log relative error), capped at the 11 that are certified.
double digits(double value, double certified) {
  if (value == certified) return 11.0;
  return std::min(11.0, -std::log10(std::abs(value - certified) / std::abs(certified)));
}

class NistStrd : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(NistStrd, CertifiedValuesAreReachedFromThePublishedStart) {
  const auto [name, start] = GetParam();
  const nist::Dataset dataset = nist::read_dataset(name);
  const LeastSquaresProblem problem = nist::make_problem(dataset, start);
  LeastSquaresOptions options;
  options.max_iterations = 5000;  // Bennett5 crawls along a curved valley
  options.cost_tolerance = 1e-16;
  options.step_tolerance = 1e-15;
  options.gradient_tolerance = 1e-14;
  options.rank_tolerance = 1e-14;
  options.geodesic_acceleration = true;
  const LeastSquaresSummary summary = solve(problem, options);

  double parameter_digits = 11.0;
  double error_digits = 11.0;
  ASSERT_EQ(static_cast<std::size_t>(summary.x.size()), dataset.certified.size());
  for (std::size_t j = 0; j < dataset.certified.size(); ++j) {
    parameter_digits = std::min(
        parameter_digits, digits(summary.x[static_cast<Eigen::Index>(j)], dataset.certified[j]));
    ASSERT_TRUE(summary.standard_errors[j].has_value()) << problem.unknowns[j].name;
    error_digits =
        std::min(error_digits, digits(*summary.standard_errors[j], dataset.certified_sd[j]));
  }
  RecordProperty("parameter_digits", std::to_string(parameter_digits));
  RecordProperty("error_digits", std::to_string(error_digits));
  std::printf("%-9s start %d: %4d iterations, parameters %4.1f digits, errors %4.1f digits\n",
              name.c_str(), start + 1, summary.iterations, parameter_digits, error_digits);
  // Lanczos1's residual is 1e-13 of the data: its sum of squares is rounding noise, so only the
  // parameters can be asked for.
  const bool exact_data = name == "Lanczos1";
  EXPECT_GE(parameter_digits, 6.0) << describe(problem, summary);
  if (!exact_data) {
    EXPECT_GE(error_digits, 5.0) << describe(problem, summary);
    EXPECT_GE(digits(2.0 * summary.cost, dataset.residual_sum_of_squares), 6.0);
    ASSERT_TRUE(summary.residual_sd.has_value());
    EXPECT_GE(digits(*summary.residual_sd, dataset.residual_sd), 6.0);
  }
  EXPECT_TRUE(summary.converged) << to_string(summary.termination);
}

INSTANTIATE_TEST_SUITE_P(BothStarts, NistStrd,
                         ::testing::Combine(::testing::ValuesIn(nist::dataset_names()),
                                            ::testing::Values(0, 1)),
                         [](const auto& test_case) {
                           return std::get<0>(test_case.param) + "_start" +
                                  std::to_string(std::get<1>(test_case.param) + 1);
                         });

}  // namespace
}  // namespace fulcrum::calibrate
