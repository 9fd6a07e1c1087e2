#include "calibrate/law_problem.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace fulcrum::calibrate {

double to_fit_scale(const ParameterInfo& info, double value) {
  return info.lower > 0.0 ? std::log(value) : value;
}

double from_fit_scale(const ParameterInfo& info, double x) {
  return info.lower > 0.0 ? std::exp(x) : x;
}

std::vector<Unknown> make_unknowns(const std::vector<ParameterInfo>& parameters,
                                   const std::vector<double>& start) {
  std::vector<Unknown> unknowns;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const ParameterInfo& info = parameters[j];
    Unknown unknown;
    unknown.name = info.name;
    unknown.lower = to_fit_scale(info, info.lower);
    unknown.upper = to_fit_scale(info, info.upper);
    unknown.start = to_fit_scale(info, std::clamp(start[j], info.lower, info.upper));
    unknown.fixed = !(info.lower < info.upper);
    unknowns.push_back(std::move(unknown));
  }
  return unknowns;
}

ResidualFunction log_residuals(const BoundLaw& law, std::span<const Record> records,
                               std::vector<std::uint32_t> rows,
                               std::vector<ParameterInfo> parameters) {
  std::vector<double> log_measured;
  log_measured.reserve(rows.size());
  for (const std::uint32_t i : rows) log_measured.push_back(std::log(records[i].latency_seconds));
  return [&law, rows = std::move(rows), parameters = std::move(parameters),
          log_measured = std::move(log_measured)](const Eigen::VectorXd& x,
                                                  Eigen::VectorXd& residuals, RowMatrix* jacobian) {
    const std::size_t p = parameters.size();
    std::vector<double> value(p);
    for (std::size_t j = 0; j < p; ++j) {
      value[j] = from_fit_scale(parameters[j], x[static_cast<Eigen::Index>(j)]);
    }
    std::vector<double> seconds(rows.size());
    if (jacobian == nullptr) {
      law.evaluate(value, rows, seconds);
    } else {
      law.evaluate_with_gradient(
          value, rows, seconds,
          std::span<double>(jacobian->data(), static_cast<std::size_t>(jacobian->size())));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!(seconds[i] > 0.0)) return false;
      residuals[static_cast<Eigen::Index>(i)] = std::log(seconds[i]) - log_measured[i];
    }
    if (jacobian == nullptr) return true;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double inverse = 1.0 / seconds[i];
      for (std::size_t j = 0; j < p; ++j) {
        const double slope = parameters[j].lower > 0.0 ? value[j] : 1.0;
        (*jacobian)(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) *= inverse * slope;
      }
    }
    return true;
  };
}

std::vector<std::string> bound_errors(const std::vector<Unknown>& unknowns,
                                      LeastSquaresSummary& summary) {
  std::vector<Eigen::Index> known;
  for (std::size_t j = 0; j < unknowns.size(); ++j) {
    if (summary.standard_errors[j]) known.push_back(static_cast<Eigen::Index>(j));
  }
  const auto q = static_cast<Eigen::Index>(known.size());
  Eigen::MatrixXd c(q, q);
  Eigen::VectorXd box(q);
  std::vector<std::string> weak;
  for (Eigen::Index a = 0; a < q; ++a) {
    const auto ja = static_cast<std::size_t>(known[static_cast<std::size_t>(a)]);
    const double width = unknowns[ja].upper - unknowns[ja].lower;
    box[a] = width * width / 12.0;
    for (Eigen::Index b = 0; b < q; ++b) {
      c(a, b) = summary.covariance(known[static_cast<std::size_t>(a)],
                                   known[static_cast<std::size_t>(b)]);
    }
    if (c(a, a) > box[a]) weak.push_back(unknowns[ja].name);
  }
  // (C^-1 + W^-1)^-1 = C (C + W)^-1 W
  const Eigen::MatrixXd w = box.asDiagonal();
  Eigen::MatrixXd bounded = c * (c + w).ldlt().solve(w);
  bounded = (0.5 * (bounded + bounded.transpose())).eval();
  for (Eigen::Index a = 0; a < q; ++a) {
    const Eigen::Index ja = known[static_cast<std::size_t>(a)];
    summary.standard_errors[static_cast<std::size_t>(ja)] = std::sqrt(std::max(0.0, bounded(a, a)));
    for (Eigen::Index b = 0; b < q; ++b) {
      summary.covariance(ja, known[static_cast<std::size_t>(b)]) = bounded(a, b);
    }
  }
  return weak;
}

void fill_parameters(const std::vector<ParameterInfo>& parameters,
                     const LeastSquaresSummary& summary, SeriesFit& fit) {
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const ParameterInfo& info = parameters[j];
    FittedParameter p;
    p.name = info.name;
    p.unit = info.unit;
    p.lower = info.lower;
    p.upper = info.upper;
    p.transfer = info.transfer;
    p.fixed = !(info.lower < info.upper);
    p.value = std::clamp(from_fit_scale(info, summary.x[static_cast<Eigen::Index>(j)]), info.lower,
                         info.upper);
    const auto contains = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), p.name) != names.end();
    };
    if (contains(summary.at_lower_bound)) p.at_bound = AtBound::kLower;
    if (contains(summary.at_upper_bound)) p.at_bound = AtBound::kUpper;
    if (summary.standard_errors[j]) {
      p.standard_error = *summary.standard_errors[j] * (p.log_scale() ? p.value : 1.0);
    }
    fit.parameters.push_back(std::move(p));
  }
}

}  // namespace fulcrum::calibrate
