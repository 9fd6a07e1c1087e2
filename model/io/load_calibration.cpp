#include "model/io/load_calibration.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "model/io/data_dir.h"
#include "model/io/json_reader.h"
#include "model/io/load_hardware.h"

namespace fulcrum::io {

namespace fs = std::filesystem;

namespace {

using Keys = std::initializer_list<std::string_view>;

/// Marks keys that the calibrator writes for people, and pricing does not read.
void ignore_all(JsonObject& object, Keys keys) {
  for (std::string_view key : keys) object.ignore(key);
}

void check_errors(JsonObject& entry) {
  entry.optional_object("errors", [](JsonObject& errors) {
    for (std::string_view split : {"fitted_rows", "held_out_shapes", "frontier",
                                   "held_out_shapes_law_alone", "frontier_law_alone"}) {
      errors.optional_object(split, [](JsonObject& row) {
        ignore_all(row,
                   {"num_rows", "median_ape", "p90_ape", "bias_log", "coverage_fraction_of_90"});
      });
    }
  });
}

void check_directions(JsonObject& entry) {
  const nlohmann::json* directions = entry.raw("not_identified");
  if (directions == nullptr || !directions->is_array()) return;
  for (std::size_t i = 0; i < directions->size(); ++i) {
    const nlohmann::json& direction = (*directions)[i];
    for (std::size_t j = 0; direction.is_array() && j < direction.size(); ++j) {
      JsonObject part(
          direction[j], entry.file(),
          entry.pointer_to("not_identified") + "/" + std::to_string(i) + "/" + std::to_string(j),
          entry.problems());
      ignore_all(part, {"name", "share"});
      part.reject_unknown();
    }
  }
}

void check_provenance(JsonObject& object) {
  ignore_all(object, {"data_source", "date", "git_sha"});
  if (!object.has("tables")) return;
  object.objects("tables", [](JsonObject& table) {
    ignore_all(table, {"file", "sha256", "num_rows", "num_used"});
    table.optional_object("quarantined", [](JsonObject& reasons) {
      ignore_all(reasons, {"malformed", "not_positive", "below_launch_floor", "above_physics",
                           "duplicate", "disagreeing_duplicate", "eager_launch", "wrong_units",
                           "non_monotone", "slow_tactic"});
    });
  });
}

}  // namespace

Calibration load_calibration(const std::string& path) {
  const nlohmann::json document = read_json_file(path);
  std::vector<InputProblem> problems;
  JsonObject object(document, path, "", problems);
  throw_if_any(problems);
  Calibration calibration;
  calibration.file = path;
  object.schema("fulcrum/calibration/1");
  calibration.hardware = object.string("hardware");
  object.objects("series", [&](JsonObject& entry) {
    CalibratedSeries series;
    const std::string id = entry.string("id");
    series.law_family = entry.string("family");
    series.source = entry.string("source");
    series.log_sigma = entry.number("log_sigma", kNonNegative);
    entry.objects("parameters", [&](JsonObject& parameter) {
      CalibratedParameter value;
      value.value = parameter.number("value", Range{-kHuge, kHuge});
      // null: the data do not identify the parameter.
      value.standard_error =
          parameter.optional_number("standard_error", kNonNegative).value_or(0.0);
      series.parameters.insert_or_assign(parameter.string("name"), value);
      ignore_all(parameter, {"unit", "lower", "upper", "state", "moves_as"});
    });
    // The rest of an entry (correlations, hold-out errors) is the calibrator's.
    ignore_all(entry, {"num_rows", "num_shape_groups", "converged", "correlation", "reach",
                       "scale_log_beyond", "warnings"});
    entry.optional_object("key", [](JsonObject& key) {
      ignore_all(key, {"device", "engine", "engine_version", "table", "op_name", "kernel_source",
                       "dtype"});
    });
    for (std::string_view spread : {"residual", "residual_law_alone"}) {
      entry.optional_object(spread, [](JsonObject& residual) {
        ignore_all(residual, {"scale_log", "degrees_of_freedom", "median_log"});
      });
    }
    entry.optional_object("correction", [](JsonObject& correction) {
      ignore_all(correction, {"num_features", "nodes"});
    });
    check_errors(entry);
    check_directions(entry);
    calibration.series.insert_or_assign(id, std::move(series));
  });
  check_provenance(object);
  object.reject_unknown();
  throw_if_any(problems);
  return calibration;
}

std::shared_ptr<const Calibration> find_calibration(const Hardware& hardware) {
  const fs::path directory = fs::path(data_dir()) / "calibration";
  std::error_code ignored;
  const auto read = [](const fs::path& path) {
    return std::make_shared<const Calibration>(load_calibration(path.string()));
  };
  const fs::path own = directory / (hardware.name + ".json");
  if (fs::is_regular_file(own, ignored)) return read(own);
  std::vector<fs::path> candidates;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".json") candidates.push_back(entry.path());
  }
  std::sort(candidates.begin(), candidates.end());
  for (const fs::path& candidate : candidates) {
    const fs::path described = fs::path(data_dir()) / "hardware" / candidate.filename();
    if (!fs::is_regular_file(described, ignored)) continue;
    if (load_hardware(described.string()).compute_capability == hardware.compute_capability) {
      return read(candidate);
    }
  }
  return nullptr;
}

}  // namespace fulcrum::io
