// Fitting and scoring of measured tables.
#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>

#include "calibrate/calibration.h"
#include "calibrate/io/calibration_file.h"
#include "calibrate/io/read_table.h"
#include "model/errors.h"
#include "model/io/data_dir.h"
#include "model/io/load_hardware.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace fulcrum::python {
namespace {

/// Screened tables of one device.
struct Tables {
  Hardware hardware;
  LawDevice device;
  std::vector<calibrate::MeasurementTable> tables;
};

Tables read_tables(const std::vector<std::string>& files, const std::string& device) {
  if (files.empty()) throw InputError({"call", "tables", "is empty", "one or more CSV files"});
  Tables out;
  for (const std::string& file : files) {
    calibrate::MeasurementTable table = calibrate::io::read_table(file, {device, "", ""});
    std::string name = table.device;
    std::replace(name.begin(), name.end(), '_', '-');
    if (out.tables.empty()) {
      out.hardware = io::load_hardware(io::resolve("hardware", name, file, "device of the table"));
      const auto& links = out.hardware.links;
      out.device = law_device(out.hardware, links.empty() ? nullptr : &links.front());
    } else if (name != out.hardware.name) {
      throw InputError(
          {file, "", "is of " + name + ", not of " + out.hardware.name, "tables of one device"});
    }
    calibrate::screen(table, out.device);
    out.tables.push_back(std::move(table));
  }
  return out;
}

py::dict table_counts(const calibrate::MeasurementTable& table) {
  py::dict reasons;
  const auto counts = calibrate::count_reasons(table);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    reasons[calibrate::to_string(static_cast<calibrate::QuarantineReason>(i))] = counts[i];
  }
  return py::dict(py::arg("file") = table.file, py::arg("num_rows") = table.num_rows,
                  py::arg("set_aside") = reasons);
}

/// calibration text, what no law explains, rows per table
py::tuple fit(const std::vector<std::string>& files, const std::string& device,
              const std::string& data_source, const std::string& date, std::uint64_t seed) {
  std::string text;
  std::vector<std::string> unexplained;
  Tables tables;
  {
    const py::gil_scoped_release release;
    tables = read_tables(files, device);
    calibrate::Calibration calibration;
    calibration.hardware = tables.hardware.name;
    calibration.data_source = data_source;
    calibration.date = date;
    for (const auto& table : tables.tables) {
      calibration.tables.push_back(calibrate::provenance_of(table));
    }
    const auto tasks = calibrate::collect_tasks(tables.tables, unexplained);
    calibrate::FitOptions options;
    options.seed = seed;
    calibration.series = calibrate::fit_all(tasks, tables.device, options);
    text = calibrate::io::calibration_text(calibration);
  }
  py::list counts;
  for (const auto& table : tables.tables) counts.append(table_counts(table));
  return py::make_tuple(text, unexplained, counts);
}

py::dict score_row(const std::string& id, const calibrate::ErrorStatistics& e) {
  return py::dict(py::arg("series") = id, py::arg("num_rows") = e.num_rows,
                  py::arg("median_ape") = e.median_ape, py::arg("p90_ape") = e.p90_ape,
                  py::arg("bias_log") = e.bias, py::arg("coverage_fraction") = e.coverage_fraction);
}

/// Scores, and the series that the calibration does not hold.
py::tuple score(const std::vector<std::string>& files, const std::string& device,
                const std::string& calibration_path) {
  std::vector<std::pair<std::string, calibrate::ErrorStatistics>> scores;
  std::vector<std::string> missing;
  {
    const py::gil_scoped_release release;
    const Tables tables = read_tables(files, device);
    const std::string path =
        calibration_path.empty()
            ? io::resolve("calibration", tables.hardware.name, "call", "calibration")
            : calibration_path;
    const calibrate::Calibration calibration = calibrate::io::read_calibration(path);
    for (const calibrate::FitTask& task : calibrate::collect_tasks(tables.tables, missing)) {
      const std::string id = calibrate::series_id(task.key);
      const calibrate::SeriesFit* known = calibrate::find_series(calibration, task.key);
      if (known == nullptr) {
        missing.push_back(id);
        continue;
      }
      std::vector<std::uint32_t> rows(task.records.size());
      std::iota(rows.begin(), rows.end(), 0);
      const auto law = task.family->bind(task.key, tables.device, task.records);
      scores.emplace_back(id, calibrate::score(*known, law, task.records, rows));
    }
  }
  py::list out;
  for (const auto& [id, errors] : scores) out.append(score_row(id, errors));
  return py::make_tuple(out, missing);
}

}  // namespace

void bind_calibrate(py::module_& module) {
  module.def("_fit", &fit);
  module.def("_score", &score);
}

}  // namespace fulcrum::python
