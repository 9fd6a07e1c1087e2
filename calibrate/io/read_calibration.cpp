#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "calibrate/io/calibration_file.h"
#include "model/io/json_reader.h"

namespace fulcrum::calibrate::io {
namespace {

using fulcrum::io::JsonObject;
using fulcrum::io::Range;

constexpr Range kAny{-fulcrum::io::kHuge, fulcrum::io::kHuge};
/// No family has more; a damaged file asks for no memory.
constexpr double kMostFeatures = 16.0;
constexpr Range kNonNegative = fulcrum::io::kNonNegative;

ErrorStatistics read_errors(JsonObject& object, bool has_coverage = true) {
  ErrorStatistics e;
  e.num_rows = static_cast<std::size_t>(object.integer("num_rows", kNonNegative));
  e.median_ape = object.number("median_ape", kNonNegative);
  e.p90_ape = object.number("p90_ape", kNonNegative);
  e.bias = object.number("bias_log", kAny);
  if (has_coverage) {
    e.coverage_fraction = object.number("coverage_fraction_of_90", fulcrum::io::kFraction);
  }
  object.reject_unknown();
  return e;
}

std::string text(JsonObject& object, std::string_view key) { return object.string_or(key, ""); }

SeriesKey read_key(JsonObject& object) {
  SeriesKey key;
  key.device = object.string("device");
  key.engine = object.string("engine");
  key.engine_version = text(object, "engine_version");
  key.table = object.string("table");
  key.op_name = text(object, "op_name");
  key.kernel_source = object.string("kernel_source");
  key.dtype = text(object, "dtype");
  object.reject_unknown();
  return key;
}

FittedParameter read_parameter(JsonObject& object) {
  constexpr std::string_view kStates[] = {"fitted", "fixed", "at_lower_bound", "at_upper_bound",
                                          "not_identified"};
  constexpr std::string_view kMoves[] = {"dimensionless", "time", "per_second"};
  FittedParameter p;
  p.name = object.string("name");
  p.unit = object.string("unit");
  p.lower = object.number("lower", kAny);
  p.upper = object.number("upper", Range{p.lower, fulcrum::io::kHuge});
  // Bounds and value are rounded to 9 digits each.
  const double slack = 1e-8 * std::max(std::abs(p.lower), std::abs(p.upper));
  p.value = object.number("value", Range{p.lower - slack, p.upper + slack});
  const nlohmann::json* error = object.raw("standard_error");
  if (error != nullptr && error->is_number()) {
    p.standard_error = error->get<double>();
  } else if (error == nullptr || !error->is_null()) {
    object.problem("standard_error", "must be there", "a number, or null where it is unknown");
  }
  switch (object.choice("state", kStates)) {
    case 1:
      p.fixed = true;
      break;
    case 2:
      p.at_bound = AtBound::kLower;
      break;
    case 3:
      p.at_bound = AtBound::kUpper;
      break;
    default:
      break;
  }
  p.transfer = static_cast<Transfer>(object.choice("moves_as", kMoves));
  object.reject_unknown();
  return p;
}

/// Covariance in fit scale from the lower triangle of correlations and the standard errors.
void read_covariance(JsonObject& object, SeriesFit& fit) {
  const auto p = static_cast<Eigen::Index>(fit.parameters.size());
  Eigen::VectorXd sd = Eigen::VectorXd::Zero(p);
  for (Eigen::Index j = 0; j < p; ++j) {
    const FittedParameter& parameter = fit.parameters[static_cast<std::size_t>(j)];
    if (!parameter.standard_error) continue;
    sd[j] = *parameter.standard_error / (parameter.log_scale() ? parameter.value : 1.0);
  }
  fit.covariance = sd.cwiseAbs2().asDiagonal();
  const nlohmann::json* rows = object.raw("correlation");
  const auto complain = [&] {
    object.problem("correlation", "does not fit the parameters",
                   "lower triangle without diagonal: row i has i numbers from -1 to 1");
  };
  if (rows == nullptr || !rows->is_array() || rows->size() != fit.parameters.size()) {
    complain();
    return;
  }
  for (Eigen::Index i = 0; i < p; ++i) {
    const nlohmann::json& row = (*rows)[static_cast<std::size_t>(i)];
    if (!row.is_array() || row.size() != static_cast<std::size_t>(i)) return complain();
    for (Eigen::Index j = 0; j < i; ++j) {
      const nlohmann::json& r = row[static_cast<std::size_t>(j)];
      if (!r.is_number() || std::abs(r.get<double>()) > 1.0) return complain();
      fit.covariance(i, j) = fit.covariance(j, i) = r.get<double>() * sd[i] * sd[j];
    }
  }
}

/// "feature ... feature weight" into its numbers; false if it is not that.
bool parse_node(const std::string& text, std::size_t count, std::vector<double>& numbers) {
  numbers.clear();
  const char* at = text.c_str();
  char* end = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    numbers.push_back(std::strtod(at, &end));
    if (end == at || !(std::abs(numbers.back()) < fulcrum::io::kHuge)) return false;
    at = end;
  }
  return *at == '\0';
}

LogCorrection read_correction(JsonObject& object) {
  LogCorrection correction;
  correction.num_features =
      static_cast<std::size_t>(object.integer("num_features", Range{1.0, kMostFeatures}));
  const nlohmann::json* nodes = object.raw("nodes");
  const auto complain = [&] {
    object.problem("nodes", "does not fit num_features",
                   "strings of num_features numbers and a weight, separated by blanks");
    return LogCorrection{};
  };
  if (nodes == nullptr || !nodes->is_array() || nodes->empty()) return complain();
  std::vector<double> numbers;
  for (const nlohmann::json& node : *nodes) {
    if (!node.is_string() ||
        !parse_node(node.get<std::string>(), correction.num_features + 1, numbers)) {
      return complain();
    }
    correction.weights.push_back(numbers.back());
    correction.nodes.insert(correction.nodes.end(), numbers.begin(), numbers.end() - 1);
  }
  object.reject_unknown();
  return correction;
}

NullDirection read_direction(const nlohmann::json& value, JsonObject& owner) {
  NullDirection direction;
  for (const nlohmann::json& entry : value) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("share") || !entry["share"].is_number()) {
      owner.problem("not_identified", "is malformed", "arrays of {name, share}");
      return {};
    }
    direction.names.push_back(entry["name"].get<std::string>());
    direction.components.push_back(entry["share"].get<double>());
  }
  return direction;
}

ResidualModel read_residual(JsonObject& entry) {
  ResidualModel residual;
  residual.scale = entry.number("scale_log", kNonNegative);
  residual.degrees_of_freedom = entry.number("degrees_of_freedom", fulcrum::io::kPositive);
  residual.bias = entry.number("median_log", kAny);
  entry.reject_unknown();
  return residual;
}

SeriesFit read_series(JsonObject& object) {
  SeriesFit fit;
  const std::string id = object.string("id");
  fit.family = object.string("family");
  object.object("key", [&](JsonObject& key) { fit.key = read_key(key); });
  if (id != series_id(fit.key)) {
    object.problem("id", "\"" + id + "\" does not follow from the key", series_id(fit.key));
  }
  object.ignore("source");
  object.ignore("log_sigma");  // follows from "residual"
  fit.num_rows = static_cast<std::size_t>(object.integer("num_rows", kNonNegative));
  fit.num_groups = static_cast<std::size_t>(object.integer("num_shape_groups", kNonNegative));
  fit.converged = object.boolean_or("converged", false);
  object.objects("parameters",
                 [&](JsonObject& entry) { fit.parameters.push_back(read_parameter(entry)); });
  read_covariance(object, fit);
  object.object("residual", [&](JsonObject& entry) { fit.residual = read_residual(entry); });
  fit.law_residual = fit.residual;
  if (object.has("reach")) fit.reach = object.numbers("reach", kNonNegative);
  fit.scale_beyond = object.optional_number("scale_log_beyond", kNonNegative).value_or(0.0);
  object.optional_object("residual_law_alone",
                         [&](JsonObject& entry) { fit.law_residual = read_residual(entry); });
  object.object("errors", [&](JsonObject& errors) {
    errors.optional_object("fitted_rows", [&](JsonObject& e) { fit.fitted = read_errors(e); });
    errors.optional_object("held_out_shapes", [&](JsonObject& e) { fit.inside = read_errors(e); });
    errors.optional_object("frontier", [&](JsonObject& e) { fit.outside = read_errors(e); });
    errors.optional_object("held_out_shapes_law_alone",
                           [&](JsonObject& e) { fit.inside_law = read_errors(e, false); });
    errors.optional_object("frontier_law_alone",
                           [&](JsonObject& e) { fit.outside_law = read_errors(e, false); });
    errors.reject_unknown();
  });
  object.optional_object("correction", [&](JsonObject& e) { fit.correction = read_correction(e); });
  if (const nlohmann::json* directions = object.raw("not_identified")) {
    for (const nlohmann::json& entry : *directions) {
      fit.null_directions.push_back(read_direction(entry, object));
    }
  }
  if (const nlohmann::json* warnings = object.raw("warnings")) {
    for (const nlohmann::json& entry : *warnings) {
      if (entry.is_string()) fit.warnings.push_back(entry.get<std::string>());
    }
  }
  object.reject_unknown();
  return fit;
}

TableProvenance read_table_entry(JsonObject& object) {
  TableProvenance table;
  table.file = object.string("file");
  table.sha256 = object.string("sha256");
  table.num_rows = static_cast<std::uint32_t>(object.integer("num_rows", kNonNegative));
  table.num_used = static_cast<std::uint32_t>(object.integer("num_used", kNonNegative));
  object.object("quarantined", [&](JsonObject& reasons) {
    for (std::size_t i = 0; i < kNumQuarantineReasons; ++i) {
      const char* name = to_string(static_cast<QuarantineReason>(i));
      table.num_quarantined[i] =
          static_cast<std::uint32_t>(reasons.integer_or(name, kNonNegative, 0));
    }
    reasons.reject_unknown();
  });
  object.reject_unknown();
  return table;
}

Calibration from_json(const nlohmann::json& document, const std::string& file) {
  std::vector<InputProblem> problems;
  JsonObject object(document, file, "", problems);
  Calibration calibration;
  object.schema("fulcrum/calibration/1");
  calibration.hardware = object.string("hardware");
  calibration.data_source = text(object, "data_source");
  calibration.date = text(object, "date");
  calibration.git_sha = text(object, "git_sha");
  object.objects("tables",
                 [&](JsonObject& entry) { calibration.tables.push_back(read_table_entry(entry)); });
  object.objects("series",
                 [&](JsonObject& entry) { calibration.series.push_back(read_series(entry)); });
  object.reject_unknown();
  fulcrum::io::throw_if_any(problems);
  return calibration;
}

}  // namespace

Calibration parse_calibration(const std::string& text, const std::string& file) {
  return from_json(fulcrum::io::parse_json(text, file), file);
}

Calibration read_calibration(const std::string& path) {
  return from_json(fulcrum::io::read_json_file(path), path);
}

}  // namespace fulcrum::calibrate::io
