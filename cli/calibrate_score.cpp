// `fulcrum calibrate --score`: an existing calibration against a table, nothing fitted.
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "calibrate/io/calibration_file.h"
#include "calibrate/score.h"
#include "cli/calibrate_options.h"
#include "cli/table.h"
#include "model/io/data_dir.h"

namespace fulcrum::cli {

int calibrate_score(const std::vector<TablesOfDevice>& devices,
                    const boost::program_options::variables_map& values) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  Table table({{"series", Align::kLeft, true}, {"n"}, {"median"}, {"p90"}, {"bias"}, {"cover"}});
  for (const TablesOfDevice& device : devices) {
    const std::string path =
        values.count("calibration") != 0
            ? values["calibration"].as<std::string>()
            : io::resolve("calibration", device.hardware.name, "command line", "--score");
    const calibrate::Calibration calibration = calibrate::io::read_calibration(path);
    std::vector<std::string> unexplained;
    for (const calibrate::FitTask& task : calibrate::collect_tasks(device.tables, unexplained)) {
      const std::string id = calibrate::series_id(task.key);
      const calibrate::SeriesFit* fit = calibrate::find_series(calibration, task.key);
      if (fit == nullptr) {
        unexplained.push_back(id + " (not in " + path + ")");
        continue;
      }
      const calibrate::BoundLaw law = task.family->bind(task.key, device.device, task.records);
      std::vector<std::uint32_t> all(task.records.size());
      std::iota(all.begin(), all.end(), 0);
      const calibrate::ErrorStatistics e = calibrate::score(*fit, law, task.records, all);
      table.add({id, std::to_string(e.num_rows), percent(e.median_ape), percent(e.p90_ape),
                 percent(e.bias), percent(e.coverage_fraction)});
      rows.push_back({{"series", id},
                      {"kernel_source", task.key.kernel_source},
                      {"n", e.num_rows},
                      {"median_ape", e.median_ape},
                      {"p90_ape", e.p90_ape},
                      {"bias_log", e.bias},
                      {"coverage_fraction_of_90", e.coverage_fraction}});
    }
    for (const std::string& name : unexplained) std::cerr << "note: not scored: " << name << '\n';
  }
  if (values["json"].as<bool>()) {
    std::cout << nlohmann::ordered_json{{"schema", "fulcrum/calibration_score/1"}, {"series", rows}}
                     .dump(1)
              << '\n';
    return 0;
  }
  table.print(std::cout, TerminalStyle::of_stdout());
  return 0;
}

}  // namespace fulcrum::cli
