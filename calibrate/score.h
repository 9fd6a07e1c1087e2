// Errors of predictions, gathered over folds.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "calibrate/fit.h"

namespace fulcrum::calibrate {

/// Fewer held-out rows than this say less about the spread than the fitted ones.
inline constexpr std::size_t kLeastRowsForSpread = 30;

class ErrorCollector {
 public:
  void add(const SeriesFit& fit, const BoundLaw& law, std::span<const Record> records,
           RowIndices rows);
  /// nullopt if no row was added.
  std::optional<ErrorStatistics> statistics() const;
  /// Errors of the law alone, without correction or coverage.
  std::optional<ErrorStatistics> law_statistics() const;
  /// log(measured / predicted) of every row added.
  const std::vector<double>& residuals() const { return residuals_; }
  /// Same of the law alone.
  const std::vector<double>& law_residuals() const { return law_residuals_; }

 private:
  std::vector<double> residuals_;
  std::vector<double> law_residuals_;
  std::size_t num_covered_ = 0;
};

}  // namespace fulcrum::calibrate
