#include "calibrate/correction.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "calibrate/random.h"
#include "calibrate/residual_model.h"

namespace fulcrum::calibrate {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr std::size_t kNumFolds = 5;
/// Noise variance over prior variance of the process.
constexpr std::array<double, 5> kNoiseRatios = {0.03, 0.1, 0.3, 1.0, 3.0};
/// Mean absolute residual a correction must take away from unseen shapes to be worth its nodes.
constexpr double kLeastGain = 0.02;
/// Features are kept in steps of this, so that nodes print short and exactly.
constexpr double kFeatureStep = 1.0 / 64.0;
/// On the diagonal of the nodes' own matrix: keeps weights moderate where nodes crowd.
constexpr double kNugget = 1e-4;
/// No table repeats better than this.
constexpr double kLeastErrorScale = 1e-3;
/// Fewer rows carry no correction.
constexpr std::size_t kLeastRows = 12;

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

/// Points, one a column [d,n].
Matrix points_of(const BoundLaw& law, RowIndices rows) {
  Matrix x(index(law.num_features), index(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t f = 0; f < law.num_features; ++f) {
      x(index(f), index(i)) = law.features[rows[i] * law.num_features + f];
    }
  }
  return x;
}

/// Greedy k-centre: each next node is the point furthest from all nodes so far.
Matrix choose_nodes(const Matrix& x) {
  const std::size_t most = std::min(kMaxCorrectionNodes, static_cast<std::size_t>(x.cols()) / 2);
  const Matrix snapped = ((x.array() / kFeatureStep).round() * kFeatureStep).matrix();
  Matrix nodes(x.rows(), index(most));
  const Vector middle = snapped.rowwise().mean();
  Eigen::Index next = 0;
  (snapped.colwise() - middle).colwise().squaredNorm().minCoeff(&next);
  Eigen::RowVectorXd distance =
      Eigen::RowVectorXd::Constant(x.cols(), std::numeric_limits<double>::infinity());
  std::size_t count = 0;
  while (count < most) {
    nodes.col(index(count++)) = snapped.col(next);
    distance = distance.cwiseMin((snapped.colwise() - snapped.col(next)).colwise().squaredNorm());
    if (distance.maxCoeff(&next) <= kFeatureStep) break;
  }
  return nodes.leftCols(index(count));
}

/// Bumps of all points at all nodes [n,M].
Matrix bumps(const Matrix& x, const Matrix& nodes) {
  Matrix squared = -2.0 * x.transpose() * nodes;
  squared.colwise() += Vector(x.colwise().squaredNorm().transpose());
  squared.rowwise() += Eigen::RowVectorXd(nodes.colwise().squaredNorm());
  const Eigen::ArrayXXd d = (3.0 * squared.array().max(0.0)).sqrt();
  return ((1.0 + d) * (-d).exp()).matrix();
}

/// F^T F of some rows, lower triangle.
Matrix gram(const Eigen::Ref<const Matrix>& f) {
  Matrix result = Matrix::Zero(f.cols(), f.cols());
  // A product of no rows divides by zero in Eigen 3.4.
  if (f.rows() > 0) result.selfadjointView<Eigen::Lower>().rankUpdate(f.transpose());
  return result;
}

Vector solve_lower(const Matrix& a, const Vector& b) {
  return Eigen::LLT<Matrix, Eigen::Lower>(a).solve(b);
}

/// Rows by fold, each fold contiguous.
struct Folded {
  std::vector<std::size_t> order;
  std::array<std::size_t, kNumFolds + 1> begin{};
};

Folded fold_rows(std::span<const std::uint64_t> shape_hashes) {
  Folded folded;
  for (std::size_t f = 0; f < kNumFolds; ++f) {
    folded.begin[f] = folded.order.size();
    for (std::size_t i = 0; i < shape_hashes.size(); ++i) {
      if (mix64(shape_hashes[i] + 1) % kNumFolds == f) folded.order.push_back(i);
    }
  }
  folded.begin[kNumFolds] = folded.order.size();
  return folded;
}

/// Second pass with Huber weights at the scale the first leaves: jumps of a library are no trend.
Vector robust_weights(const Matrix& f, const Vector& y, const Vector& first, const Matrix& prior) {
  const Vector error = (y - f * first).cwiseAbs();
  const std::span<const double> errors(error.data(), static_cast<std::size_t>(error.size()));
  const double scale = std::max(kLeastErrorScale, 2.0 * quantile(errors, 0.5));
  const Vector root =
      error.unaryExpr([scale](double e) { return e > scale ? std::sqrt(scale / e) : 1.0; });
  const Matrix weighted = root.asDiagonal() * f;
  return solve_lower(gram(weighted) + prior, weighted.transpose() * root.cwiseProduct(y));
}

/// What one problem's cross-validation and last solution share.
struct Problem {
  Folded folded;
  Vector y;  ///< [n] in folded order, what a bounded correction can explain
  Matrix nodes, own, f;
  Matrix gram_of_all;
  Vector side_of_all;

  auto block(std::size_t q) const {
    return f.middleRows(index(folded.begin[q]), index(folded.begin[q + 1] - folded.begin[q]));
  }
  auto part(std::size_t q) const {
    return y.segment(index(folded.begin[q]), index(folded.begin[q + 1] - folded.begin[q]));
  }
};

/// Noise ratio with the least mean absolute error on shapes held out, 0 if none gains enough;
/// `explained` [n] is what it predicts there.
double choose_noise(const Problem& problem, const std::array<Matrix, kNumFolds>& grams,
                    const std::array<Vector, kNumFolds>& sides, Vector& explained) {
  double best = (1.0 - kLeastGain) * problem.y.cwiseAbs().sum();
  double noise = 0.0;
  explained = Vector::Zero(problem.y.size());
  Vector candidate = explained;
  for (const double ratio : kNoiseRatios) {
    const Matrix prior = problem.gram_of_all + ratio * problem.own;
    for (std::size_t q = 0; q < kNumFolds; ++q) {
      if (problem.part(q).size() == 0) continue;
      const Vector w = solve_lower(prior - grams[q], problem.side_of_all - sides[q]);
      candidate.segment(index(problem.folded.begin[q]), problem.part(q).size()) =
          problem.block(q) * w;
    }
    candidate = candidate.cwiseMax(-kLogCorrectionBound).cwiseMin(kLogCorrectionBound);
    const double left = (problem.y - candidate).cwiseAbs().sum();
    if (!(left < best)) continue;
    best = left;
    noise = ratio;
    explained = candidate;
  }
  return noise;
}

}  // namespace

CorrectionFit fit_correction(const BoundLaw& law, RowIndices rows,
                             std::span<const double> residuals,
                             std::span<const std::uint64_t> shape_hashes,
                             std::optional<double> noise_ratio) {
  CorrectionFit fit;
  fit.held_out_residuals.assign(residuals.begin(), residuals.end());
  if (law.num_features == 0 || rows.size() < kLeastRows || noise_ratio == 0.0) return fit;

  Problem problem;
  problem.folded = fold_rows(shape_hashes);
  std::vector<std::uint32_t> ordered;
  problem.y.resize(index(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = problem.folded.order[i];
    ordered.push_back(rows[row]);
    problem.y[index(i)] = std::clamp(residuals[row], -kLogCorrectionBound, kLogCorrectionBound);
  }
  const Matrix x = points_of(law, ordered);
  problem.nodes = choose_nodes(x);
  problem.own = bumps(problem.nodes, problem.nodes);
  problem.own.diagonal().array() += kNugget;
  problem.f = bumps(x, problem.nodes);

  std::array<Matrix, kNumFolds> grams;
  std::array<Vector, kNumFolds> sides;
  problem.gram_of_all = Matrix::Zero(problem.f.cols(), problem.f.cols());
  problem.side_of_all = Vector::Zero(problem.f.cols());
  for (std::size_t q = 0; q < kNumFolds; ++q) {
    grams[q] = gram(problem.block(q));
    sides[q] = Vector::Zero(problem.f.cols());
    if (problem.part(q).size() > 0) sides[q] = problem.block(q).transpose() * problem.part(q);
    problem.gram_of_all += grams[q];
    problem.side_of_all += sides[q];
  }
  Vector explained;
  fit.noise_ratio = noise_ratio ? *noise_ratio : choose_noise(problem, grams, sides, explained);
  if (fit.noise_ratio == 0.0) return fit;

  const Matrix prior = fit.noise_ratio * problem.own;
  const Vector first = solve_lower(problem.gram_of_all + prior, problem.side_of_all);
  const Vector weights = robust_weights(problem.f, problem.y, first, prior);
  if (!weights.allFinite()) return {0.0, {}, fit.held_out_residuals};
  if (noise_ratio) explained = problem.f * weights;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    fit.held_out_residuals[problem.folded.order[i]] -= explained[index(i)];
  }
  fit.correction.num_features = law.num_features;
  fit.correction.nodes.assign(problem.nodes.data(), problem.nodes.data() + problem.nodes.size());
  fit.correction.weights.assign(weights.data(), weights.data() + weights.size());
  return fit;
}

}  // namespace fulcrum::calibrate
