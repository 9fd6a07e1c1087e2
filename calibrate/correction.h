// Learns a LogCorrection: a Gaussian process on the residuals of a fitted law, reduced to at most
// kMaxCorrectionNodes nodes (subset of regressors). The noise is chosen by cross-validation over
// shapes; a correction that does not help shapes it has not seen is not made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/family.h"
#include "model/laws/log_correction.h"

namespace fulcrum::calibrate {

/// A prediction costs one bump a node, about 2 us at this number.
inline constexpr std::size_t kMaxCorrectionNodes = 256;

struct CorrectionFit {
  double noise_ratio = 0.0;  ///< of the process that was chosen; 0: no correction
  LogCorrection correction;  ///< empty if none helps
  /// log(measured / predicted) of each row as a correction learned on other shapes predicts it.
  std::vector<double> held_out_residuals;
};

/// residuals[i] = log(measured / law) of row rows[i], shape_hashes[i] its shape's. `law` gives the
/// features; without any there is no correction. A given `noise_ratio` is taken as it is, without
/// cross-validation; held_out_residuals are then those of the fitted rows.
CorrectionFit fit_correction(const BoundLaw& law, RowIndices rows,
                             std::span<const double> residuals,
                             std::span<const std::uint64_t> shape_hashes,
                             std::optional<double> noise_ratio = {});

}  // namespace fulcrum::calibrate
