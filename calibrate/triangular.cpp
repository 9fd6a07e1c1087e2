#include "calibrate/triangular.h"

#include <Eigen/QR>

namespace fulcrum::calibrate {

TriangularFactor::TriangularFactor(Eigen::Index num_columns)
    : r_(Eigen::MatrixXd::Zero(num_columns, num_columns)), c_(Eigen::VectorXd::Zero(num_columns)) {}

void TriangularFactor::add(const Eigen::Ref<const Eigen::MatrixXd>& a,
                           const Eigen::Ref<const Eigen::VectorXd>& b) {
  const Eigen::Index p = r_.cols();
  // Blocks that stay in the first-level cache with the stacked R on top.
  constexpr Eigen::Index kBlockRows = 128;
  Eigen::MatrixXd stacked(p + kBlockRows, p + 1);
  for (Eigen::Index begin = 0; begin < a.rows(); begin += kBlockRows) {
    const Eigen::Index rows = std::min(kBlockRows, a.rows() - begin);
    auto block = stacked.topRows(p + rows);
    block.topLeftCorner(p, p) = r_;
    block.col(p).head(p) = c_;
    block.bottomLeftCorner(rows, p) = a.middleRows(begin, rows);
    block.col(p).tail(rows) = b.segment(begin, rows);
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(block);
    const Eigen::Index diagonal = std::min<Eigen::Index>(p + 1, p + rows);
    r_ = qr.matrixQR().topLeftCorner(p, p).triangularView<Eigen::Upper>();
    c_ = qr.matrixQR().col(p).head(p);
    if (diagonal > p) {
      const double left = qr.matrixQR()(p, p);
      rest_squared_ += left * left;
    }
  }
}

}  // namespace fulcrum::calibrate
