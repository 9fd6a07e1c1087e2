#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "calibrate/io/calibration_file.h"
#include "model/interval.h"

namespace fulcrum::calibrate::io {
namespace {

using Json = nlohmann::ordered_json;

/// 9 significant digits: far below any standard error, short enough to read.
Json number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return std::strtod(buffer, nullptr);
}

/// Correlations: 6 decimals. Predictions are differences of strongly correlated parameters, so a
/// correlation of 0.9999 must not become 1.
Json correlation(double value) { return std::round(value * 1e6) / 1e6; }

/// Shares: 3 decimals.
Json share(double value) { return std::round(value * 1e3) / 1e3; }

Json errors_json(const ErrorStatistics& e) {
  return {{"num_rows", e.num_rows},
          {"median_ape", number(e.median_ape)},
          {"p90_ape", number(e.p90_ape)},
          {"bias_log", number(e.bias)},
          {"coverage_fraction_of_90", number(e.coverage_fraction)}};
}

Json residual_json(const ResidualModel& residual) {
  return {{"scale_log", number(residual.scale)},
          {"degrees_of_freedom", number(residual.degrees_of_freedom)},
          {"median_log", number(residual.bias)}};
}

/// The law has no interval of its own once it is corrected.
Json law_errors_json(const ErrorStatistics& e) {
  Json json = errors_json(e);
  json.erase("coverage_fraction_of_90");
  return json;
}

const char* transfer_name(Transfer transfer) {
  switch (transfer) {
    case Transfer::kDimensionless:
      return "dimensionless";
    case Transfer::kTime:
      return "time";
    case Transfer::kPerSecond:
      return "per_second";
  }
  return "";
}

Json parameter_json(const FittedParameter& p) {
  Json json = {{"name", p.name}, {"unit", p.unit}, {"value", number(p.value)}};
  json["standard_error"] = p.standard_error ? number(*p.standard_error) : Json(nullptr);
  json["lower"] = number(p.lower);
  json["upper"] = number(p.upper);
  json["state"] = p.fixed                         ? "fixed"
                  : p.at_bound == AtBound::kLower ? "at_lower_bound"
                  : p.at_bound == AtBound::kUpper ? "at_upper_bound"
                  : p.standard_error              ? "fitted"
                                                  : "not_identified";
  json["moves_as"] = transfer_name(p.transfer);
  return json;
}

/// Row-wise lower triangle without the diagonal, in the order of the parameters.
Json correlation_json(const SeriesFit& fit) {
  Json rows = Json::array();
  for (Eigen::Index i = 0; i < fit.covariance.rows(); ++i) {
    Json row = Json::array();
    for (Eigen::Index j = 0; j < i; ++j) {
      const double product = fit.covariance(i, i) * fit.covariance(j, j);
      const double r = product > 0.0 ? fit.covariance(i, j) / std::sqrt(product) : 0.0;
      row.push_back(correlation(std::clamp(r, -1.0, 1.0)));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// One string a node, features then weight: one line each in the file.
Json correction_json(const LogCorrection& correction) {
  Json nodes = Json::array();
  for (std::size_t j = 0; j < correction.weights.size(); ++j) {
    std::string text;
    char buffer[32];
    for (std::size_t f = 0; f < correction.num_features; ++f) {
      std::snprintf(buffer, sizeof buffer, "%.7g ",
                    correction.nodes[j * correction.num_features + f]);
      text += buffer;
    }
    std::snprintf(buffer, sizeof buffer, "%.7g", correction.weights[j]);
    nodes.push_back(text + buffer);
  }
  return {{"num_features", correction.num_features}, {"nodes", std::move(nodes)}};
}

Json series_json(const SeriesFit& fit, const std::string& data_source) {
  Json json;
  json["id"] = series_id(fit.key);
  json["family"] = fit.family;
  json["key"] = {{"device", fit.key.device},
                 {"engine", fit.key.engine},
                 {"engine_version", fit.key.engine_version},
                 {"table", fit.key.table},
                 {"op_name", fit.key.op_name},
                 {"kernel_source", fit.key.kernel_source},
                 {"dtype", fit.key.dtype}};
  json["source"] = data_source;
  json["num_rows"] = fit.num_rows;
  json["num_shape_groups"] = fit.num_groups;
  json["converged"] = fit.converged;
  json["parameters"] = Json::array();
  for (const FittedParameter& p : fit.parameters) json["parameters"].push_back(parameter_json(p));
  json["correlation"] = correlation_json(fit);
  // The law alone: a normal distribution with the same 90 % interval, for whoever cannot use the t.
  // Four decimals, so that a file read and written again does not change in the last digit.
  const double sigma = half_width(fit.law_residual, 0.9, 0.0) / kNormalP95;
  json["log_sigma"] = std::round(sigma * 1e4) / 1e4;
  json["residual"] = residual_json(fit.residual);
  json["reach"] = Json::array();
  for (const double size : fit.reach) json["reach"].push_back(number(size));
  json["scale_log_beyond"] = number(fit.scale_beyond);
  if (!fit.correction.empty()) {
    json["correction"] = correction_json(fit.correction);
    json["residual_law_alone"] = residual_json(fit.law_residual);
  }
  json["errors"] = Json::object();
  if (fit.fitted) json["errors"]["fitted_rows"] = errors_json(*fit.fitted);
  if (fit.inside) json["errors"]["held_out_shapes"] = errors_json(*fit.inside);
  if (fit.outside) json["errors"]["frontier"] = errors_json(*fit.outside);
  if (fit.inside_law)
    json["errors"]["held_out_shapes_law_alone"] = law_errors_json(*fit.inside_law);
  if (fit.outside_law) json["errors"]["frontier_law_alone"] = law_errors_json(*fit.outside_law);
  json["not_identified"] = Json::array();
  for (const NullDirection& direction : fit.null_directions) {
    Json entry = Json::array();
    for (std::size_t k = 0; k < direction.names.size(); ++k) {
      entry.push_back({{"name", direction.names[k]}, {"share", share(direction.components[k])}});
    }
    json["not_identified"].push_back(std::move(entry));
  }
  json["warnings"] = fit.warnings;
  return json;
}

Json table_json(const TableProvenance& table) {
  Json reasons = Json::object();
  for (std::size_t i = 0; i < kNumQuarantineReasons; ++i) {
    if (table.num_quarantined[i] > 0) {
      reasons[to_string(static_cast<QuarantineReason>(i))] = table.num_quarantined[i];
    }
  }
  return {{"file", table.file},
          {"sha256", table.sha256},
          {"num_rows", table.num_rows},
          {"num_used", table.num_used},
          {"quarantined", reasons}};
}

}  // namespace

std::string calibration_text(const Calibration& calibration) {
  Json json;
  json["schema"] = "fulcrum/calibration/1";
  json["hardware"] = calibration.hardware;
  json["data_source"] = calibration.data_source;
  json["date"] = calibration.date;
  json["git_sha"] = calibration.git_sha;
  json["tables"] = Json::array();
  for (const TableProvenance& table : calibration.tables) {
    json["tables"].push_back(table_json(table));
  }
  json["series"] = Json::array();
  for (const SeriesFit& fit : calibration.series) {
    json["series"].push_back(series_json(fit, calibration.data_source));
  }
  return json.dump(1) + "\n";
}

void write_calibration(const Calibration& calibration, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << calibration_text(calibration);
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace fulcrum::calibrate::io
