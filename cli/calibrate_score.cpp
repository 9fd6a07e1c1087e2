// Modes of `fulcrum calibrate` that judge: an existing calibration against a table, few rows with a
// prior against the rest, another device's parameters against this one's rows.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <numeric>

#include "calibrate/io/calibration_file.h"
#include "calibrate/prior.h"
#include "calibrate/score.h"
#include "cli/calibrate_options.h"
#include "model/errors.h"
#include "model/io/data_dir.h"

namespace fulcrum::cli {
namespace {

std::vector<std::uint32_t> all_rows(const calibrate::FitTask& task) {
  std::vector<std::uint32_t> rows(task.records.size());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

std::vector<calibrate::FitTask> tasks_of(const TablesOfDevice& device) {
  std::vector<std::string> unexplained;
  auto tasks = calibrate::collect_tasks(device.tables, unexplained);
  for (const std::string& name : unexplained) std::cerr << "note: no law for " << name << '\n';
  return tasks;
}

}  // namespace

int calibrate_score(const std::vector<TablesOfDevice>& devices,
                    const boost::program_options::variables_map& values) {
  std::vector<ScoredSeries> scores;
  for (const TablesOfDevice& device : devices) {
    const std::string path =
        values.count("calibration") != 0
            ? values["calibration"].as<std::string>()
            : io::resolve("calibration", device.hardware.name, "command line", "--score");
    const calibrate::Calibration calibration = calibrate::io::read_calibration(path);
    for (const calibrate::FitTask& task : tasks_of(device)) {
      const std::string id = calibrate::series_id(task.key);
      const calibrate::SeriesFit* fit = calibrate::find_series(calibration, task.key);
      if (fit == nullptr) {
        std::cerr << "note: not scored: " << id << " is not in " << path << '\n';
        continue;
      }
      const calibrate::BoundLaw law = task.family->bind(task.key, device.device, task.records);
      scores.push_back({id, task.key.kernel_source, 0,
                        calibrate::score(*fit, law, task.records, all_rows(task))});
    }
  }
  print_scores(scores, "fulcrum/calibration_score/1", values["json"].as<bool>());
  return 0;
}

int calibrate_few_shot(const std::vector<TablesOfDevice>& devices,
                       const boost::program_options::variables_map& values) {
  const int wanted = values["from"].as<int>();
  if (wanted < 1) {
    throw InputError({"command line", "--from", "is " + std::to_string(wanted), "1 or more rows"});
  }
  const auto count = static_cast<std::size_t>(wanted);
  const std::vector<CalibrationOfDevice> known = read_calibrations(values);
  calibrate::FitOptions options;
  options.seed = values["seed"].as<std::uint64_t>();
  std::vector<ScoredSeries> scores;
  for (const TablesOfDevice& device : devices) {
    for (const calibrate::FitTask& task : tasks_of(device)) {
      // The table itself may be in the shipped calibration: it must not be its own prior.
      std::vector<calibrate::Example> examples;
      for (const CalibrationOfDevice& other : known) {
        for (const calibrate::SeriesFit& fit : other.calibration.series) {
          if (fit.key != task.key) examples.push_back({&fit, other.device});
        }
      }
      const calibrate::Family& family = *task.family;
      if (task.records.size() <= count) {
        std::cerr << "note: " << calibrate::series_id(task.key) << " has only "
                  << task.records.size() << " rows\n";
        continue;
      }
      const auto prior = calibrate::learn_prior(family, task.key, device.device, examples);
      const auto law = family.bind(task.key, device.device, task.records);
      const std::vector<std::uint32_t> all = all_rows(task);
      const auto rows = calibrate::choose_rows(
          law, prior, family.parameters(task.key, device.device), all, count, options.seed);
      const auto fit = calibrate::fit_with_prior(family, task.key, device.device, task.records, law,
                                                 rows, prior, options);
      std::vector<std::uint32_t> rest;
      std::set_difference(all.begin(), all.end(), rows.begin(), rows.end(),
                          std::back_inserter(rest));
      scores.push_back({calibrate::series_id(task.key), task.key.kernel_source, rows.size(),
                        calibrate::score(fit, law, task.records, rest)});
    }
  }
  print_scores(scores, "fulcrum/calibration_few_shot/1", values["json"].as<bool>());
  return 0;
}

int calibrate_transfer(const std::vector<TablesOfDevice>& devices,
                       const boost::program_options::variables_map& values) {
  if (values.count("calibration") == 0) {
    throw InputError({"command line", "--transfer", "says not where from",
                      "--calibration FILE of another device"});
  }
  const CalibrationOfDevice from = read_calibrations(values).front();
  std::vector<ScoredSeries> scores;
  for (const TablesOfDevice& device : devices) {
    for (const calibrate::FitTask& task : tasks_of(device)) {
      const std::string id = calibrate::series_id(task.key);
      const calibrate::SeriesFit* fit = calibrate::find_series(from.calibration, task.key);
      if (fit == nullptr) {
        std::cerr << "note: " << from.calibration.hardware << " has no " << id << '\n';
        continue;
      }
      if (fit->family != task.family->name) {
        std::cerr << "note: " << id << " runs another kernel there (" << fit->family << " against "
                  << task.family->name << ")\n";
        continue;
      }
      const auto law = task.family->bind(task.key, device.device, task.records);
      const auto moved =
          calibrate::move_fit(*task.family, *fit, task.key, from.device, device.device);
      scores.push_back({id, task.key.kernel_source, 0,
                        calibrate::score(moved, law, task.records, all_rows(task))});
    }
  }
  print_scores(scores, "fulcrum/calibration_transfer/1", values["json"].as<bool>());
  return 0;
}

}  // namespace fulcrum::cli
