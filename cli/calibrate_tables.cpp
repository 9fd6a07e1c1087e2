// Reading, screening and naming tables for `fulcrum calibrate`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calibrate/io/calibration_file.h"
#include "calibrate/io/read_collectives.h"
#include "calibrate/io/read_table.h"
#include "cli/calibrate_options.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/data_dir.h"
#include "model/io/load_hardware.h"

namespace fulcrum::cli {

std::string hardware_name(std::string device) {
  std::replace(device.begin(), device.end(), '_', '-');
  return device;
}

std::string percent(const std::optional<double>& fraction) {
  if (!fraction) return "-";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f %%", *fraction * 100.0);
  return buffer;
}

void print_quarantine(const calibrate::MeasurementTable& table, bool verbose) {
  if (table.quarantined.empty()) return;
  std::cerr << "note: " << table.file << ": " << table.quarantined.size() << " of "
            << table.num_rows << " rows set aside:";
  const auto counts = calibrate::count_reasons(table);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    std::cerr << ' ' << counts[i] << ' '
              << calibrate::to_string(static_cast<calibrate::QuarantineReason>(i));
  }
  std::cerr << (verbose ? "\n" : " (--verbose lists them)\n");
  for (const calibrate::QuarantinedRow& row : table.quarantined) {
    if (!verbose) break;
    std::cerr << "  line " << row.line << ": " << calibrate::to_string(row.reason) << ": "
              << row.detail << '\n';
  }
}

std::vector<TablesOfDevice> read_tables(const std::vector<std::string>& files,
                                        const boost::program_options::variables_map& values) {
  calibrate::io::TableOrigin origin;
  const auto text = [&](const char* option) {
    return values.count(option) != 0 ? values[option].as<std::string>() : std::string();
  };
  origin.device = text("device");
  origin.engine = text("engine");
  origin.engine_version = text("engine-version");

  std::vector<TablesOfDevice> devices;
  for (const std::string& file : files) {
    calibrate::MeasurementTable table = calibrate::io::is_collectives_file(file)
                                            ? calibrate::io::read_collectives(file, origin)
                                            : calibrate::io::read_table(file, origin);
    const std::string name = hardware_name(table.device);
    auto found = std::find_if(devices.begin(), devices.end(),
                              [&](const TablesOfDevice& d) { return d.hardware.name == name; });
    if (found == devices.end()) {
      TablesOfDevice fresh;
      fresh.hardware =
          io::load_hardware(io::resolve("hardware", name, file, "device of the table"));
      // The tables do not say how the GPUs of a collective were linked: the host's first link.
      const auto& links = fresh.hardware.links;
      fresh.device = law_device(fresh.hardware, links.empty() ? nullptr : &links.front());
      devices.push_back(std::move(fresh));
      found = devices.end() - 1;
    }
    for (const calibrate::MeasurementTable& other : found->tables) {
      if (other.sha256 == table.sha256) {
        throw InputError({file, "content", "is the same table as " + other.file,
                          "each table once: repeated rows would count twice"});
      }
    }
    calibrate::screen(table, found->device);
    print_quarantine(table, values["verbose"].as<bool>());
    found->tables.push_back(std::move(table));
  }
  return devices;
}

std::vector<CalibrationOfDevice> read_calibrations(
    const boost::program_options::variables_map& values) {
  std::vector<std::string> files;
  if (values.count("calibration") != 0) {
    files.push_back(values["calibration"].as<std::string>());
  } else {
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(io::data_dir() + "/calibration", ignored)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
  }
  std::vector<CalibrationOfDevice> result;
  for (const std::string& file : files) {
    CalibrationOfDevice entry;
    entry.calibration = calibrate::io::read_calibration(file);
    entry.hardware =
        io::load_hardware(io::resolve("hardware", entry.calibration.hardware, file, "/hardware"));
    const auto& links = entry.hardware.links;
    entry.device = law_device(entry.hardware, links.empty() ? nullptr : &links.front());
    result.push_back(std::move(entry));
  }
  return result;
}

void print_scores(const std::vector<ScoredSeries>& scores, const std::string& schema, bool json) {
  if (json) {
    nlohmann::ordered_json series = nlohmann::ordered_json::array();
    for (const ScoredSeries& s : scores) {
      series.push_back({{"series", s.id},
                        {"kernel_source", s.kernel_source},
                        {"num_fitted", s.num_fitted},
                        {"n", s.errors.num_rows},
                        {"median_ape", s.errors.median_ape},
                        {"p90_ape", s.errors.p90_ape},
                        {"bias_log", s.errors.bias},
                        {"coverage_fraction_of_90", s.errors.coverage_fraction}});
    }
    std::cout << nlohmann::ordered_json{{"schema", schema}, {"series", series}}.dump(1) << '\n';
    return;
  }
  Table table({{"series", Align::kLeft, true},
               {"fitted"},
               {"n"},
               {"median"},
               {"p90"},
               {"bias"},
               {"cover"}});
  for (const ScoredSeries& s : scores) {
    table.add({s.id, s.num_fitted > 0 ? std::to_string(s.num_fitted) : "-",
               std::to_string(s.errors.num_rows), percent(s.errors.median_ape),
               percent(s.errors.p90_ape), percent(s.errors.bias),
               percent(s.errors.coverage_fraction)});
  }
  table.print(std::cout, TerminalStyle::of_stdout());
}

}  // namespace fulcrum::cli
