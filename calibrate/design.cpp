#include "calibrate/design.h"

namespace fulcrum::calibrate {

std::vector<DesignStep> greedy_design(const DesignProblem& problem) {
  std::vector<DesignStep> steps;
  const Eigen::Index m = problem.candidate_gradients.rows();
  const auto q = static_cast<double>(problem.target_gradients.rows());
  Eigen::MatrixXd covariance = problem.covariance;
  std::vector<bool> taken(static_cast<std::size_t>(m), false);
  double spent = 0.0;
  double variance =
      (problem.target_gradients * covariance).cwiseProduct(problem.target_gradients).sum() / q;
  while (steps.size() < problem.max_measurements) {
    // Measuring row g lowers the variance of target c by (c' S g)^2 / (noise + g' S g).
    const Eigen::MatrixXd pulled = covariance * problem.candidate_gradients.transpose();  // [p,m]
    const Eigen::MatrixXd cross = problem.target_gradients * pulled;                      // [q,m]
    Eigen::Index best = -1;
    double best_value = 0.0;
    double best_drop = 0.0;
    for (Eigen::Index i = 0; i < m; ++i) {
      if (taken[static_cast<std::size_t>(i)]) continue;
      const double cost = problem.candidate_costs[i];
      if (spent + cost > problem.budget_seconds) continue;
      const double own = problem.candidate_gradients.row(i).dot(pulled.col(i));
      const double drop = cross.col(i).squaredNorm() / q / (problem.noise_variance + own);
      const double value = problem.per_cost ? drop / cost : drop;
      if (value > best_value) {
        best = i;
        best_value = value;
        best_drop = drop;
      }
    }
    if (best < 0 || best_drop < 1e-3 * variance) break;
    const Eigen::VectorXd gain = pulled.col(best);
    const double own = problem.candidate_gradients.row(best).dot(gain);
    covariance -= gain * gain.transpose() / (problem.noise_variance + own);
    taken[static_cast<std::size_t>(best)] = true;
    spent += problem.candidate_costs[best];
    variance -= best_drop;
    steps.push_back({static_cast<std::size_t>(best), spent, variance});
  }
  return steps;
}

}  // namespace fulcrum::calibrate
