#include "calibrate/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/random.h"

namespace fulcrum::calibrate {
namespace {

/// y = a exp(-b x) + noise at x = 0, 1, ... ; analytic derivatives.
LeastSquaresProblem exponential(const std::vector<double>& y) {
  LeastSquaresProblem problem;
  problem.unknowns = {{.name = "a", .start = 1.0, .lower = 0.0, .upper = 10.0},
                      {.name = "b", .start = 0.5, .lower = 0.0, .upper = 2.0}};
  problem.num_residuals = static_cast<Eigen::Index>(y.size());
  problem.evaluate = [y](const Eigen::VectorXd& x, Eigen::VectorXd& r, RowMatrix* jacobian) {
    for (Eigen::Index i = 0; i < r.size(); ++i) {
      const double t = 0.1 * static_cast<double>(i);
      const double e = std::exp(-x[1] * t);
      r[i] = x[0] * e - y[static_cast<std::size_t>(i)];
      if (jacobian == nullptr) continue;
      (*jacobian)(i, 0) = e;
      (*jacobian)(i, 1) = -x[0] * t * e;
    }
    return true;
  };
  return problem;
}

std::vector<double> exponential_data(double a, double b, double sd, int n, Random& random) {
  std::vector<double> y;
  for (int i = 0; i < n; ++i) {
    y.push_back(a * std::exp(-b * 0.1 * i) + (sd > 0.0 ? sd * random.normal() : 0.0));
  }
  return y;
}

TEST(LeastSquares, ALineThroughThreePointsHasTheTextbookSolutionAndErrors) {
  // y = p + q x through (0,1), (1,3), (2,4): q = 3/2, p = 7/6, residuals 1/6, -1/3, 1/6,
  // s^2 = (1/36 + 4/36 + 1/36) / 1 = 1/6; var(q) = s^2 / 2 = 1/12; var(p) = s^2 * 5/6 = 5/36.
  LeastSquaresProblem problem;
  problem.unknowns = {{.name = "p"}, {.name = "q"}};
  problem.num_residuals = 3;
  problem.evaluate = [](const Eigen::VectorXd& x, Eigen::VectorXd& r, RowMatrix* jacobian) {
    constexpr double kY[] = {1.0, 3.0, 4.0};
    for (int i = 0; i < 3; ++i) {
      r[i] = x[0] + x[1] * i - kY[i];
      if (jacobian != nullptr) jacobian->row(i) << 1.0, i;
    }
    return true;
  };
  const LeastSquaresSummary summary = solve(problem, {});
  EXPECT_TRUE(summary.converged);
  EXPECT_NEAR(summary.x[0], 7.0 / 6.0, 1e-10);
  EXPECT_NEAR(summary.x[1], 1.5, 1e-10);
  EXPECT_NEAR(*summary.residual_sd, std::sqrt(1.0 / 6.0), 1e-10);
  EXPECT_NEAR(*summary.standard_errors[0], std::sqrt(5.0 / 36.0), 1e-9);
  EXPECT_NEAR(*summary.standard_errors[1], std::sqrt(1.0 / 12.0), 1e-9);
}

TEST(LeastSquares, StandardErrorsCoverPlantedParametersAtTheirRateIn500Worlds) {
  // n - p = 58 degrees of freedom: 1.67 standard errors hold 90 % of a t distribution.
  int covered_a = 0;
  int covered_b = 0;
  constexpr int kWorlds = 500;
  for (int world = 0; world < kWorlds; ++world) {
    Random random(static_cast<std::uint64_t>(world) + 1);
    const auto y = exponential_data(3.0, 0.7, 0.05, 60, random);
    const LeastSquaresSummary summary = solve(exponential(y), {});
    ASSERT_TRUE(summary.converged);
    covered_a += std::abs(summary.x[0] - 3.0) < 1.6716 * *summary.standard_errors[0];
    covered_b += std::abs(summary.x[1] - 0.7) < 1.6716 * *summary.standard_errors[1];
  }
  // 450 expected with a standard deviation of sqrt(500 * 0.9 * 0.1) = 6.7; four of them are
  // allowed.
  EXPECT_NEAR(covered_a, 450, 27);
  EXPECT_NEAR(covered_b, 450, 27);
}

TEST(LeastSquares, ClusteredErrorsAreSeenByTheSandwichAndMissedWithoutIt) {
  // The mean of 40 clusters of 10 rows that share all of their error: the variance is
  // sd^2 / 40, not sd^2 / 400.
  Random random(7);
  LeastSquaresProblem problem;
  problem.unknowns = {{.name = "mean"}};
  problem.num_residuals = 400;
  std::vector<double> y;
  for (std::uint32_t c = 0; c < 40; ++c) {
    const double shared = random.normal();
    for (int i = 0; i < 10; ++i) {
      y.push_back(shared);
      problem.clusters.push_back(c);
    }
  }
  problem.evaluate = [y](const Eigen::VectorXd& x, Eigen::VectorXd& r, RowMatrix* jacobian) {
    for (Eigen::Index i = 0; i < r.size(); ++i) r[i] = x[0] - y[static_cast<std::size_t>(i)];
    if (jacobian != nullptr) jacobian->setOnes();
    return true;
  };
  const double with = *solve(problem, {}).standard_errors[0];
  problem.clusters.clear();
  const double without = *solve(problem, {}).standard_errors[0];
  EXPECT_NEAR(with / without, std::sqrt(10.0), 0.1);
}

TEST(LeastSquares, AnUnknownThatWantsOutStopsExactlyAtItsBound) {
  Random random(3);
  LeastSquaresProblem problem = exponential(exponential_data(3.0, 0.7, 0.0, 40, random));
  problem.unknowns[0].upper = 2.0;
  const LeastSquaresSummary summary = solve(problem, {});
  EXPECT_TRUE(summary.converged);
  EXPECT_EQ(summary.x[0], 2.0);
  ASSERT_EQ(summary.at_upper_bound.size(), 1U);
  EXPECT_EQ(summary.at_upper_bound[0], "a");
  EXPECT_FALSE(summary.standard_errors[0].has_value());
  ASSERT_TRUE(summary.standard_errors[1].has_value());
  // With a = 2 fixed the other must be optimal: the gradient along b vanishes.
  problem.unknowns[0] = {.name = "a", .start = 2.0, .fixed = true};
  EXPECT_NEAR(solve(problem, {}).x[1], summary.x[1], 1e-7);
}

TEST(LeastSquares, EveryRobustLossRecoversTheTruthThroughTenPercentOutliers) {
  for (const Loss loss : {Loss::kHuber, Loss::kCauchy, Loss::kTukey}) {
    double worst = 0.0;
    double worst_squared = 0.0;
    for (std::uint64_t world = 1; world <= 20; ++world) {
      Random random(world);
      auto y = exponential_data(3.0, 0.7, 0.01, 100, random);
      for (std::size_t i = 0; i < y.size(); i += 10) y[i] += 5.0 * random.uniform();
      const LeastSquaresProblem problem = exponential(y);
      LeastSquaresOptions options;
      worst_squared = std::max(worst_squared, std::abs(solve(problem, options).x[0] - 3.0));
      // Tukey's loss has no pull from afar: it starts where Huber's ends.
      options.loss = Loss::kHuber;
      options.loss_scale = 0.02;
      const LeastSquaresSummary huber = solve(problem, options);
      LeastSquaresProblem next = problem;
      next.unknowns[0].start = huber.x[0];
      next.unknowns[1].start = huber.x[1];
      options.loss = loss;
      options.loss_scale = loss == Loss::kTukey ? 0.06 : 0.02;
      worst = std::max(worst, std::abs(solve(next, options).x[0] - 3.0));
    }
    EXPECT_LT(worst, 0.03);
    EXPECT_GT(worst_squared, 0.3);
  }
}

TEST(LeastSquares, APairThatOnlyActsAsAProductIsReportedAsOneNullDirection) {
  LeastSquaresProblem problem;
  problem.unknowns = {
      {.name = "a", .start = 1.0}, {.name = "b", .start = 2.0}, {.name = "c", .start = 0.0}};
  problem.num_residuals = 20;
  problem.evaluate = [](const Eigen::VectorXd& x, Eigen::VectorXd& r, RowMatrix* jacobian) {
    for (Eigen::Index i = 0; i < 20; ++i) {
      const double t = static_cast<double>(i);
      r[i] = x[0] * x[1] * t + x[2] - (6.0 * t + 1.0) - (i % 2 == 0 ? 0.1 : -0.1);
      if (jacobian != nullptr) jacobian->row(i) << x[1] * t, x[0] * t, 1.0;
    }
    return true;
  };
  const LeastSquaresSummary summary = solve(problem, {});
  EXPECT_TRUE(summary.converged);
  EXPECT_NEAR(summary.x[0] * summary.x[1], 6.0, 0.05);
  ASSERT_EQ(summary.null_directions.size(), 1U);
  EXPECT_EQ(summary.null_directions[0].names.size(), 2U);
  EXPECT_FALSE(summary.standard_errors[0].has_value());
  EXPECT_FALSE(summary.standard_errors[1].has_value());
  EXPECT_TRUE(summary.standard_errors[2].has_value());
  EXPECT_NE(describe(problem, summary).find("not identified"), std::string::npos);
}

TEST(LeastSquares, APriorFillsInWhatTheDataDoNotSay) {
  // Two rows measure x0 with variance 1/4 each; the prior has x0 ~ N(0, 1/4), x1 ~ N(5, 4).
  // Posterior of x0: precision 4 + 4 + 4, mean (4 * 3 + 4 * 3) / 12 = 2; x1 stays at 5 +- 2.
  LeastSquaresProblem problem;
  problem.unknowns = {{.name = "x0"}, {.name = "x1"}};
  problem.num_residuals = 2;
  problem.weights = Eigen::Vector2d(4.0, 4.0);
  problem.prior = GaussianPrior{Eigen::Vector2d(0.0, 5.0), Eigen::Vector2d(2.0, 0.5).asDiagonal()};
  problem.evaluate = [](const Eigen::VectorXd& x, Eigen::VectorXd& r, RowMatrix* jacobian) {
    r.setConstant(x[0] - 3.0);
    if (jacobian != nullptr) {
      jacobian->col(0).setOnes();
      jacobian->col(1).setZero();
    }
    return true;
  };
  const LeastSquaresSummary summary = solve(problem, {});
  EXPECT_NEAR(summary.x[0], 2.0, 1e-9);
  EXPECT_NEAR(summary.x[1], 5.0, 1e-9);
  EXPECT_NEAR(*summary.standard_errors[0], std::sqrt(1.0 / 12.0), 1e-9);
  EXPECT_NEAR(*summary.standard_errors[1], 2.0, 1e-9);
}

TEST(LeastSquares, SeveralStartsFindTheGlobalMinimumThatOneStartMisses) {
  // sin(w t) has a local minimum at every alias; from w = 0.2 the one at 3 is out of reach.
  LeastSquaresProblem problem;
  problem.unknowns = {{.name = "w", .start = 0.2, .lower = 0.1, .upper = 5.0}};
  problem.num_residuals = 50;
  problem.evaluate = [](const Eigen::VectorXd& x, Eigen::VectorXd& r, RowMatrix* jacobian) {
    for (Eigen::Index i = 0; i < 50; ++i) {
      const double t = 0.2 * static_cast<double>(i);
      r[i] = std::sin(x[0] * t) - std::sin(3.0 * t);
      if (jacobian != nullptr) (*jacobian)(i, 0) = t * std::cos(x[0] * t);
    }
    return true;
  };
  LeastSquaresOptions options;
  EXPECT_GT(solve(problem, options).cost, 1.0);
  options.num_starts = 30;
  const LeastSquaresSummary summary = solve(problem, options);
  EXPECT_NEAR(summary.x[0], 3.0, 1e-6);
  EXPECT_GT(summary.chosen_start, 0);
  // Same seed, same answer, bit by bit.
  EXPECT_EQ(solve(problem, options).x[0], summary.x[0]);
}

TEST(LeastSquares, NumericAndAnalyticDerivativesEndAtTheSamePoint) {
  Random random(11);
  LeastSquaresProblem problem = exponential(exponential_data(3.0, 0.7, 0.05, 60, random));
  const LeastSquaresSummary analytic = solve(problem, {});
  const ResidualFunction exact = problem.evaluate;
  problem.evaluate = with_numeric_jacobian(
      [exact](const Eigen::VectorXd& x, Eigen::VectorXd& r) { return exact(x, r, nullptr); },
      problem.unknowns);
  const LeastSquaresSummary numeric = solve(problem, {});
  EXPECT_NEAR(numeric.x[0], analytic.x[0], 1e-7);
  EXPECT_NEAR(numeric.x[1], analytic.x[1], 1e-7);
  EXPECT_NEAR(*numeric.standard_errors[1], *analytic.standard_errors[1], 1e-7);
}

TEST(LeastSquares, NotConvergingAndNotBeingDefinedAreValues) {
  Random random(5);
  LeastSquaresProblem problem = exponential(exponential_data(3.0, 0.7, 0.05, 60, random));
  LeastSquaresOptions options;
  options.max_iterations = 1;
  const LeastSquaresSummary cut = solve(problem, options);
  EXPECT_FALSE(cut.converged);
  EXPECT_EQ(cut.termination, Termination::kMaxIterations);
  problem.evaluate = [](const Eigen::VectorXd&, Eigen::VectorXd&, RowMatrix*) { return false; };
  const LeastSquaresSummary undefined = solve(problem, {});
  EXPECT_FALSE(undefined.converged);
  EXPECT_EQ(undefined.termination, Termination::kInvalidStart);
}

TEST(LeastSquares, FewerRowsThanUnknownsHaveNoStandardErrors) {
  Random random(5);
  const LeastSquaresProblem problem = exponential(exponential_data(3.0, 0.7, 0.0, 2, random));
  const LeastSquaresSummary summary = solve(problem, {});
  EXPECT_FALSE(summary.residual_sd.has_value());
  EXPECT_FALSE(summary.standard_errors[0].has_value());
}

}  // namespace
}  // namespace fulcrum::calibrate
