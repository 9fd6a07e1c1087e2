#include "calibrate/score.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::calibrate {
namespace {

constexpr double kIntervalProbability = 0.9;

}  // namespace

std::vector<TimePrediction> predict(const SeriesFit& fit, const BoundLaw& law, RowIndices rows) {
  const std::vector<double> parameters = values(fit);
  const std::size_t p = parameters.size();
  std::vector<double> seconds(rows.size());
  std::vector<double> gradient(rows.size() * p);
  law.evaluate_with_gradient(parameters, rows, seconds, gradient);
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
    prediction.seconds = seconds[i];
    prediction.log_sd_parameters = std::sqrt(std::max(0.0, slope.dot(fit.covariance * slope)));
    const double half = quantile_95 * std::hypot(fit.residual.scale, prediction.log_sd_parameters);
    prediction.low_seconds = seconds[i] * std::exp(fit.residual.bias - half);
    prediction.high_seconds = seconds[i] * std::exp(fit.residual.bias + half);
  }
  return predictions;
}

void ErrorCollector::add(const SeriesFit& fit, const BoundLaw& law, std::span<const Record> records,
                         RowIndices rows) {
  const std::vector<TimePrediction> predictions = predict(fit, law, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double measured = records[rows[i]].latency_seconds;
    residuals_.push_back(std::log(measured / predictions[i].seconds));
    num_covered_ +=
        measured >= predictions[i].low_seconds && measured <= predictions[i].high_seconds;
  }
}

std::optional<ErrorStatistics> ErrorCollector::statistics() const {
  if (residuals_.empty()) return std::nullopt;
  ErrorStatistics statistics;
  statistics.num_rows = residuals_.size();
  std::vector<double> ape;
  for (const double r : residuals_) ape.push_back(std::abs(std::expm1(-r)));
  statistics.median_ape = quantile(ape, 0.5);
  statistics.p90_ape = quantile(ape, 0.9);
  statistics.bias = -quantile(residuals_, 0.5);
  statistics.coverage_fraction =
      static_cast<double>(num_covered_) / static_cast<double>(residuals_.size());
  return statistics;
}

ErrorStatistics score(const SeriesFit& fit, const BoundLaw& law, std::span<const Record> records,
                      RowIndices rows) {
  ErrorCollector collector;
  collector.add(fit, law, records, rows);
  return collector.statistics().value_or(ErrorStatistics{});
}

}  // namespace fulcrum::calibrate
