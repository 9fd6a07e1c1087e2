// Fits a kernel family's law to the measured rows of one series, and says how wrong it still is.
//
// Residuals are log(predicted / measured). Rows that share a shape are fitted or held out together;
// rows at the frontier of the range are never fitted while errors are estimated. The parameters
// that are kept come from a last fit to all rows.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/family.h"
#include "calibrate/least_squares.h"
#include "calibrate/residual_model.h"
#include "model/laws/log_correction.h"

namespace fulcrum::calibrate {

struct FitOptions {
  double holdout_fraction = 0.2;  ///< of the shape groups
  /// Series with fewer rows are held out in folds, every group once, so that no error is an
  /// accident of one draw.
  std::size_t min_rows_for_single_holdout = 3000;
  int num_folds = 5;
  int num_starts = 8;                ///< at least; up to four times as many where rows are few
  int start_row_budget = 6400;       ///< rows times starts aimed at
  std::size_t max_start_rows = 400;  ///< rows that choose among the starts
  std::size_t max_rows = 1500;       ///< rows of the final fit; more are thinned evenly
  bool corrects = true;              ///< learn what the law leaves over (calibrate/correction.h)
  std::size_t max_correction_rows = 2500;
  /// Of the correction; chosen by cross-validation where absent.
  std::optional<double> correction_noise;
  int max_iterations = 40;
  std::uint64_t seed = 1;
};

enum class AtBound { kNo, kLower, kUpper };

struct FittedParameter {
  std::string name;
  std::string unit;
  double lower = 0.0;
  double upper = 0.0;
  double value = 0.0;
  /// In the parameter's unit; absent where fixed, at a bound or not identified.
  std::optional<double> standard_error;
  AtBound at_bound = AtBound::kNo;
  bool fixed = false;
  Transfer transfer = Transfer::kDimensionless;

  /// Fitted as log(value).
  bool log_scale() const { return lower > 0.0; }
};

/// Errors of predictions over some rows; APE = |predicted - measured| / measured.
struct ErrorStatistics {
  std::size_t num_rows = 0;
  double median_ape = 0.0;
  double p90_ape = 0.0;
  double bias = 0.0;               ///< median of log(predicted / measured)
  double coverage_fraction = 0.0;  ///< rows inside their 90 % interval
};

struct SeriesFit {
  SeriesKey key;
  std::string family;
  std::vector<FittedParameter> parameters;
  /// [p,p] in fit scale (log where log_scale()); zero rows for parameters without an error.
  Eigen::MatrixXd covariance;
  LogCorrection correction;       ///< of the law; empty where none helped unseen shapes
  double correction_noise = 0.0;  ///< while fitting: its noise ratio
  ResidualModel residual;         ///< spread of log(measured / predicted)
  /// Largest size fitted of each kind in BoundLaw::reach, and the scale of the spread beyond any of
  /// them: what extrapolation by a factor of two was seen to miss, at least residual.scale.
  std::vector<double> reach;
  double scale_beyond = 0.0;
  /// Spread about the law alone, for who prices without the correction.
  ResidualModel law_residual;
  std::size_t num_rows = 0;
  std::size_t num_groups = 0;
  /// Held-out shapes inside the range and rows at the frontier; absent if there are none.
  std::optional<ErrorStatistics> fitted, inside, outside;
  /// The same two without the correction.
  std::optional<ErrorStatistics> inside_law, outside_law;
  bool converged = false;
  Termination termination = Termination::kInvalidStart;
  double condition_number = 0.0;
  std::vector<NullDirection> null_directions;
  /// What a reader must know: too few rows for the parameters, all rows equal, ...
  std::vector<std::string> warnings;
};

/// Point and interval of one prediction.
struct TimePrediction {
  double seconds = 0.0;
  double law_seconds = 0.0;        ///< without the correction
  double log_sd_parameters = 0.0;  ///< from the covariance alone
  double low_seconds = 0.0;        ///< 5 %
  double high_seconds = 0.0;       ///< 95 %
};

/// Fits `rows` only; no hold-out. `start`: values in parameter units to start from instead of the
/// family's (then no other starts are tried). Residual spread comes from the fitted rows.
SeriesFit fit_rows(const Family& family, const SeriesKey& key, const LawDevice& device,
                   std::span<const Record> records, const BoundLaw& law, RowIndices rows,
                   const FitOptions& options, std::optional<std::vector<double>> start = {});

/// Hold-out fits for the errors, then the fit to all rows that is kept.
SeriesFit fit_series(const Family& family, const SeriesKey& key, const LawDevice& device,
                     std::span<const Record> records, const FitOptions& options);

/// Predicts rows of a law bound on the fit's parameters.
std::vector<TimePrediction> predict(const SeriesFit& fit, const BoundLaw& law, RowIndices rows);

/// Errors of a fit on rows.
ErrorStatistics score(const SeriesFit& fit, const BoundLaw& law, std::span<const Record> records,
                      RowIndices rows);

/// True if a row is larger than all that the fit has seen.
bool is_beyond(const SeriesFit& fit, const BoundLaw& law, std::uint32_t row);

/// Parameter values in family order.
std::vector<double> values(const SeriesFit& fit);

}  // namespace fulcrum::calibrate
