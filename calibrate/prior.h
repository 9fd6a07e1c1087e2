// What other kernels and devices say about a family's parameters before the first row is measured.
#pragma once

#include <Eigen/Core>
#include <span>
#include <string>
#include <vector>

#include "calibrate/fit.h"

namespace fulcrum::calibrate {

/// A fitted series and the device it was measured on.
struct Example {
  const SeriesFit* fit = nullptr;
  LawDevice device;
};

/// Gaussian over fit-scale parameters of one family, for one target series and device.
struct FamilyPrior {
  std::vector<std::string> names;
  Eigen::VectorXd mean;                       ///< [p]
  Eigen::MatrixXd covariance;                 ///< [p,p]
  std::vector<std::vector<double>> examples;  ///< parameter values moved to the device; starts
  double residual_scale = 0.0;                ///< typical spread about the law, log units
};

/// Parameter values of a fit moved to another device: dimensionless ones and times as they are,
/// rates with the device's peak (Family::transfer_scale, else DRAM bandwidth).
std::vector<double> move_parameters(const Family& family, const SeriesFit& fit,
                                    const LawDevice& from, const LawDevice& to);

/// The fit moved to another device, as a prediction for the same kernel there: parameters moved,
/// the covariance widened by `extra_log_sd` per parameter, the spread that of the law alone and of
/// moving: a learned correction belongs to the device it was learned on.
SeriesFit move_fit(const Family& family, const SeriesFit& fit, const SeriesKey& key,
                   const LawDevice& from, const LawDevice& to, double extra_log_sd = 0.0);

/// Mean and spread of the examples' parameters, moved to `device`. Parameters that fewer than two
/// examples identify keep the family's start value and the spread of a
/// uniform distribution over their box. Examples of other
/// families, or with other parameter names, are passed over. Correlations are shrunk towards none
/// by the share p / (p + examples): a handful of tables cannot tell p^2 of them.
FamilyPrior learn_prior(const Family& family, const SeriesKey& key, const LawDevice& device,
                        std::span<const Example> examples);

/// Maximum a posteriori fit of `rows`. The spread of the residuals is estimated with them, starting
/// from the examples' (weight: `kPriorRowsForSpread` rows).
SeriesFit fit_with_prior(const Family& family, const SeriesKey& key, const LawDevice& device,
                         std::span<const Record> records, const BoundLaw& law, RowIndices rows,
                         const FamilyPrior& prior, const FitOptions& options);

/// The `count` rows that together say most about all rows, under the prior and before any time is
/// known.
std::vector<std::uint32_t> choose_rows(const BoundLaw& law, const FamilyPrior& prior,
                                       const std::vector<ParameterInfo>& parameters,
                                       RowIndices rows, std::size_t count, std::uint64_t seed);

/// d log(time) / d fit-scale parameter, one row per launch [n,p], at parameter values.
Eigen::MatrixXd log_gradients(const BoundLaw& law, const std::vector<ParameterInfo>& parameters,
                              std::span<const double> values, RowIndices rows);

}  // namespace fulcrum::calibrate
