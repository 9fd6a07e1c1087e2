#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/design.h"
#include "calibrate/random.h"
#include "calibrate/residual_model.h"
#include "calibrate/triangular.h"

namespace fulcrum::calibrate {
namespace {

TEST(StudentT, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_t_quantile(0.95, 1.0), 6.313751514675, 1e-8);
  EXPECT_NEAR(student_t_quantile(0.975, 4.0), 2.776445105198, 1e-8);
  EXPECT_NEAR(student_t_quantile(0.95, 30.0), 1.697260886593, 1e-8);
  EXPECT_NEAR(student_t_quantile(0.05, 4.0), -student_t_quantile(0.95, 4.0), 1e-12);
  EXPECT_NEAR(student_t_cdf(student_t_quantile(0.8, 2.0), 2.0), 0.8, 1e-9);
}

TEST(ResidualModel, NormalResidualsGiveTheirSdAndManyDegreesOfFreedom) {
  Random random(1);
  std::vector<double> normal, heavy;
  for (int i = 0; i < 20000; ++i) normal.push_back(0.1 + 0.05 * random.normal());
  const ResidualModel model = fit_residual_model(normal);
  EXPECT_NEAR(model.bias, 0.1, 0.002);
  EXPECT_GE(model.degrees_of_freedom, 10.0);
  EXPECT_NEAR(half_width(model, 0.9, 0.0), 1.645 * 0.05, 0.002);
  // Cauchy: the ratio of two normals.
  for (int i = 0; i < 20000; ++i) heavy.push_back(random.normal() / random.normal());
  EXPECT_LE(fit_residual_model(heavy).degrees_of_freedom, 1.5);
  EXPECT_GT(half_width(model, 0.9, 0.1), half_width(model, 0.9, 0.0));
}

TEST(Quantile, IsLinearBetweenOrderStatistics) {
  const std::vector<double> v = {4.0, 1.0, 3.0, 2.0};
  EXPECT_DOUBLE_EQ(quantile(v, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(v, 0.0), 1.0);
  EXPECT_DOUBLE_EQ(quantile(v, 1.0), 4.0);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{7.0}, 0.9), 7.0);
}

TEST(TriangularFactor, BlocksOfRowsGiveTheNormalEquationsOfAllRows) {
  Random random(2);
  Eigen::MatrixXd a(300, 4);
  Eigen::VectorXd b(300);
  for (Eigen::Index i = 0; i < a.rows(); ++i) {
    for (Eigen::Index j = 0; j < a.cols(); ++j) a(i, j) = random.normal();
    b[i] = random.normal();
  }
  TriangularFactor factor(4);
  factor.add(a.topRows(1), b.head(1));
  factor.add(a.middleRows(1, 150), b.segment(1, 150));
  factor.add(a.bottomRows(149), b.tail(149));
  EXPECT_LT((factor.r().transpose() * factor.r() - a.transpose() * a).norm(), 1e-10);
  EXPECT_LT((factor.r().transpose() * factor.c() - a.transpose() * b).norm(), 1e-10);
  EXPECT_NEAR(factor.c().squaredNorm() + factor.rest_squared(), b.squaredNorm(), 1e-10);
}

TEST(Design, TheRowThatSharesTheTargetsParameterIsTakenFirstAndTheDropIsExact) {
  // Two independent parameters with variance 1; the target needs only the first. Noise variance 1:
  // measuring it leaves 1 - 1/(1 + 1) = 1/2.
  DesignProblem problem;
  problem.covariance = Eigen::MatrixXd::Identity(2, 2);
  problem.candidate_gradients = Eigen::MatrixXd::Identity(2, 2).colwise().reverse();
  problem.candidate_costs = Eigen::Vector2d(1.0, 1.0);
  problem.noise_variance = 1.0;
  problem.target_gradients = Eigen::RowVector2d(1.0, 0.0);
  const auto steps = greedy_design(problem);
  ASSERT_EQ(steps.size(), 1U);  // the other row tells nothing
  EXPECT_EQ(steps[0].candidate, 1U);
  EXPECT_DOUBLE_EQ(steps[0].target_variance, 0.5);
}

TEST(Design, ABudgetIsKeptAndCheapRowsWinPerSecond) {
  DesignProblem problem;
  problem.covariance = Eigen::MatrixXd::Identity(1, 1);
  problem.candidate_gradients = Eigen::Vector3d(2.0, 1.0, 1.0);
  problem.candidate_costs = Eigen::Vector3d(10.0, 1.0, 1.5);
  problem.noise_variance = 1.0;
  problem.target_gradients = Eigen::MatrixXd::Ones(1, 1);
  problem.budget_seconds = 3.0;
  problem.per_cost = true;
  const auto steps = greedy_design(problem);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].candidate, 1U);
  EXPECT_EQ(steps[1].candidate, 2U);
  EXPECT_LE(steps[1].spent_seconds, 3.0);
  EXPECT_NEAR(steps[1].target_variance, 1.0 / 3.0, 1e-12);  // precision 1 + 1 + 1
}

}  // namespace
}  // namespace fulcrum::calibrate
