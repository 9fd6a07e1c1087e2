// Tall-and-skinny QR: folds blocks of rows [A | b] into R (p x p) and c = Q^T b (p), keeping the
// squared norm of what is left of b. Orthogonal throughout, so the condition number of A is not
// squared as it would be by A^T A; memory is one block.
#pragma once

#include <Eigen/Core>

namespace fulcrum::calibrate {

class TriangularFactor {
 public:
  explicit TriangularFactor(Eigen::Index num_columns);

  /// Adds the rows of a [k,p] with right-hand sides b [k].
  void add(const Eigen::Ref<const Eigen::MatrixXd>& a, const Eigen::Ref<const Eigen::VectorXd>& b);

  const Eigen::MatrixXd& r() const { return r_; }  ///< [p,p], upper triangular
  const Eigen::VectorXd& c() const { return c_; }  ///< [p]
  /// |b|^2 - |c|^2: the cost that no x can remove.
  double rest_squared() const { return rest_squared_; }

 private:
  Eigen::MatrixXd r_;
  Eigen::VectorXd c_;
  double rest_squared_ = 0.0;
};

}  // namespace fulcrum::calibrate
