#include "model/io/load_calibration.h"

#include <algorithm>
#include <filesystem>

#include "model/io/data_dir.h"
#include "model/io/json_reader.h"
#include "model/io/load_hardware.h"

namespace fulcrum::io {

namespace fs = std::filesystem;

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
      parameter.each_member([](const std::string&, const nlohmann::json&) {});
    });
    // The rest of an entry (correlations, hold-out errors, provenance) is the calibrator's.
    entry.each_member([](const std::string&, const nlohmann::json&) {});
    calibration.series.insert_or_assign(id, std::move(series));
  });
  throw_if_any(problems);
  return calibration;
}

std::optional<Calibration> find_calibration(const Hardware& hardware) {
  const fs::path directory = fs::path(data_dir()) / "calibration";
  std::error_code ignored;
  const fs::path own = directory / (hardware.name + ".json");
  if (fs::is_regular_file(own, ignored)) return load_calibration(own.string());
  std::vector<fs::path> candidates;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".json") candidates.push_back(entry.path());
  }
  std::sort(candidates.begin(), candidates.end());
  for (const fs::path& candidate : candidates) {
    const fs::path described = fs::path(data_dir()) / "hardware" / candidate.filename();
    if (!fs::is_regular_file(described, ignored)) continue;
    if (load_hardware(described.string()).compute_capability == hardware.compute_capability) {
      return load_calibration(candidate.string());
    }
  }
  return std::nullopt;
}

}  // namespace fulcrum::io
