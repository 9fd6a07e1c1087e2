#include "calibrate/score.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace fulcrum::calibrate {
namespace {

constexpr double kIntervalProbability = 0.9;

/// All but the coverage.
std::optional<ErrorStatistics> errors_of(const std::vector<double>& residuals) {
  if (residuals.empty()) return std::nullopt;
  ErrorStatistics statistics;
  statistics.num_rows = residuals.size();
  std::vector<double> ape;
  for (const double r : residuals) ape.push_back(std::abs(std::expm1(-r)));
  statistics.median_ape = quantile(ape, 0.5);
  statistics.p90_ape = quantile(ape, 0.9);
  statistics.bias = -quantile(residuals, 0.5);
  return statistics;
}

}  // namespace

bool is_beyond(const SeriesFit& fit, const BoundLaw& law, std::uint32_t row) {
  if (fit.reach.size() != law.num_reach) return false;
  for (std::size_t i = 0; i < law.num_reach; ++i) {
    // Sizes in a calibration file are rounded.
    if (law.reach[row * law.num_reach + i] > fit.reach[i] * (1.0 + 1e-6)) return true;
  }
  return false;
}

std::vector<TimePrediction> predict(const SeriesFit& fit, const BoundLaw& law, RowIndices rows) {
  const std::vector<double> parameters = values(fit);
  const std::size_t p = parameters.size();
  std::vector<double> seconds(rows.size());
  std::vector<double> gradient(rows.size() * p);
  law.evaluate_with_gradient(parameters, rows, seconds, gradient);
  const LogCorrection& correction = fit.correction;
  if (!correction.empty() && correction.num_features != law.num_features) {
    throw std::invalid_argument("the correction of " + to_string(fit.key) + " has " +
                                std::to_string(correction.num_features) + " features, the law " +
                                std::to_string(law.num_features));
  }
  std::vector<TimePrediction> predictions(rows.size());
  const double quantile_95 =
      student_t_quantile(0.5 + 0.5 * kIntervalProbability, fit.residual.degrees_of_freedom);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Eigen::VectorXd slope(static_cast<Eigen::Index>(p));  // d log t / d fit-scale parameter
    for (std::size_t j = 0; j < p; ++j) {
      const double chain = fit.parameters[j].log_scale() ? parameters[j] : 1.0;
      slope[static_cast<Eigen::Index>(j)] = gradient[i * p + j] / seconds[i] * chain;
    }
    TimePrediction& prediction = predictions[i];
    prediction.law_seconds = seconds[i];
    prediction.seconds = seconds[i];
    if (!correction.empty()) {
      const std::span<const double> at(law.features.data() + rows[i] * law.num_features,
                                       law.num_features);
      prediction.seconds *= std::exp(evaluate(correction, at).log_factor);
    }
    prediction.log_sd_parameters = std::sqrt(std::max(0.0, slope.dot(fit.covariance * slope)));
    const double scale = is_beyond(fit, law, rows[i])
                             ? std::max(fit.residual.scale, fit.scale_beyond)
                             : fit.residual.scale;
    const double half = quantile_95 * std::hypot(scale, prediction.log_sd_parameters);
    prediction.low_seconds = prediction.seconds * std::exp(fit.residual.bias - half);
    prediction.high_seconds = prediction.seconds * std::exp(fit.residual.bias + half);
  }
  return predictions;
}

void ErrorCollector::add(const SeriesFit& fit, const BoundLaw& law, std::span<const Record> records,
                         RowIndices rows) {
  const std::vector<TimePrediction> predictions = predict(fit, law, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double measured = records[rows[i]].latency_seconds;
    residuals_.push_back(std::log(measured / predictions[i].seconds));
    law_residuals_.push_back(std::log(measured / predictions[i].law_seconds));
    num_covered_ +=
        measured >= predictions[i].low_seconds && measured <= predictions[i].high_seconds;
  }
}

std::optional<ErrorStatistics> ErrorCollector::statistics() const {
  std::optional<ErrorStatistics> statistics = errors_of(residuals_);
  if (statistics) {
    statistics->coverage_fraction =
        static_cast<double>(num_covered_) / static_cast<double>(residuals_.size());
  }
  return statistics;
}

std::optional<ErrorStatistics> ErrorCollector::law_statistics() const {
  return errors_of(law_residuals_);
}

ErrorStatistics score(const SeriesFit& fit, const BoundLaw& law, std::span<const Record> records,
                      RowIndices rows) {
  ErrorCollector collector;
  collector.add(fit, law, records, rows);
  return collector.statistics().value_or(ErrorStatistics{});
}

}  // namespace fulcrum::calibrate
