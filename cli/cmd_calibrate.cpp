#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calibrate/io/calibration_file.h"
#include "cli/calibrate_options.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/table.h"
#include "model/errors.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;

std::string today() {
  const std::time_t now = std::time(nullptr);
  char buffer[16];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d", std::gmtime(&now));
  return buffer;
}

/// "2026-01-31", a day that exists.
std::string checked_date(const std::string& text) {
  std::tm day{};
  const char* end = strptime(text.c_str(), "%Y-%m-%d", &day);
  std::tm same = day;
  const bool exists = end != nullptr && *end == '\0' && timegm(&same) != -1 &&
                      same.tm_mday == day.tm_mday && same.tm_mon == day.tm_mon;
  if (!exists || text.size() != 10) {
    throw InputError({"command line", "--date", "\"" + text + "\" is no day", "YYYY-MM-DD"});
  }
  return text;
}

std::string kernel_label(const calibrate::SeriesFit& fit) {
  std::string label = fit.key.engine + " " + fit.key.kernel_source;
  if (fit.key.table.find("nccl") != std::string::npos) label += " " + fit.key.op_name;
  if (fit.key.op_name.starts_with("dsv4_")) label = fit.key.op_name.substr(5) + " " + label;
  return label;
}

void print_report(const calibrate::Calibration& calibration) {
  using calibrate::ErrorStatistics;
  Table table({{"kernel", Align::kLeft},
               {"format", Align::kLeft},
               {"rows"},
               {"params"},
               {"n in"},
               {"median"},
               {"p90"},
               {"bias"},
               {"cover"},
               {"n out"},
               {"median"},
               {"p90"},
               {"bias"},
               {"cover"}});
  for (const calibrate::SeriesFit& fit : calibration.series) {
    std::size_t free = 0;
    for (const auto& parameter : fit.parameters) free += parameter.fixed ? 0 : 1;
    std::vector<std::string> cells = {kernel_label(fit), fit.key.dtype,
                                      std::to_string(fit.num_rows), std::to_string(free)};
    for (const std::optional<ErrorStatistics>& e : {fit.inside, fit.outside}) {
      cells.push_back(e ? std::to_string(e->num_rows) : "-");
      cells.push_back(e ? percent(e->median_ape) : "-");
      cells.push_back(e ? percent(e->p90_ape) : "-");
      cells.push_back(e ? percent(e->bias) : "-");
      cells.push_back(e ? percent(e->coverage_fraction) : "-");
    }
    table.add(std::move(cells));
  }
  std::cout << calibration.hardware
            << ": errors on shapes held out (in) and beyond the fitted range (out)\n";
  table.print(std::cout, TerminalStyle::of_stdout());
  for (const calibrate::SeriesFit& fit : calibration.series) {
    for (const std::string& warning : fit.warnings) {
      std::cout << "  " << calibrate::series_id(fit.key) << ": " << warning << '\n';
    }
  }
}

void print_parameters(const calibrate::Calibration& calibration) {
  Table table({{"series", Align::kLeft, true},
               {"parameter", Align::kLeft},
               {"value"},
               {"+-"},
               {"unit", Align::kLeft},
               {"note", Align::kLeft}});
  for (const calibrate::SeriesFit& fit : calibration.series) {
    for (const calibrate::FittedParameter& p : fit.parameters) {
      const char* note = p.fixed                                    ? "fixed"
                         : p.at_bound == calibrate::AtBound::kLower ? "at lower bound"
                         : p.at_bound == calibrate::AtBound::kUpper ? "at upper bound"
                         : p.standard_error                         ? ""
                                                                    : "not identified";
      table.add({calibrate::series_id(fit.key), p.name, format_number(p.value),
                 p.standard_error ? format_number(*p.standard_error) : "-", p.unit, note});
    }
  }
  table.print(std::cout, TerminalStyle::of_stdout());
}

int fit_devices(const std::vector<TablesOfDevice>& devices, const po::variables_map& values) {
  const bool writes = values.count("output") != 0;
  if (writes && devices.size() > 1) {
    throw InputError({"command line", "--output",
                      "the tables are of " + std::to_string(devices.size()) + " devices",
                      "one device per calibration file"});
  }
  calibrate::FitOptions options;
  options.seed = values["seed"].as<std::uint64_t>();
  const std::string date =
      values.count("date") != 0 ? checked_date(values["date"].as<std::string>()) : today();
  nlohmann::ordered_json documents = nlohmann::ordered_json::array();
  for (const TablesOfDevice& device : devices) {
    std::vector<std::string> unexplained;
    const auto tasks = calibrate::collect_tasks(device.tables, unexplained);
    for (const std::string& name : unexplained) {
      std::cerr << "note: no law for " << name << '\n';
    }
    calibrate::Calibration calibration;
    calibration.hardware = device.hardware.name;
    calibration.data_source = values["data-source"].as<std::string>();
    calibration.date = date;
    if (values.count("git-sha") != 0) calibration.git_sha = values["git-sha"].as<std::string>();
    for (const auto& table : device.tables) {
      calibration.tables.push_back(calibrate::provenance_of(table));
    }
    const auto begin = std::chrono::steady_clock::now();
    calibration.series = calibrate::fit_all(tasks, device.device, options, [&](const auto& task) {
      std::cerr << "fitting " << calibrate::series_id(task.key) << " (" << task.records.size()
                << " rows)\n";
    });
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    std::cerr << "fitted " << tasks.size() << " series in " << format_seconds(spent.count())
              << '\n';
    if (writes) {
      calibrate::io::write_calibration(calibration, values["output"].as<std::string>());
    }
    if (values["json"].as<bool>()) {
      documents.push_back(
          nlohmann::ordered_json::parse(calibrate::io::calibration_text(calibration)));
      continue;
    }
    if (values["parameters"].as<bool>()) print_parameters(calibration);
    if (values["report"].as<bool>() || !writes) print_report(calibration);
  }
  if (values["json"].as<bool>()) {
    std::cout << (documents.size() == 1 ? documents[0] : documents).dump(1) << '\n';
  }
  return 0;
}

}  // namespace

int run_calibrate(const Arguments& arguments) {
  po::options_description options;
  const auto text = [] { return po::value<std::string>(); };
  options.add_options()("table", po::value<std::vector<std::string>>()->composing(),
                        "measured tables (aiconfigurator CSV form)")(
      "output,o", text(), "write the calibration file here")(
      "report", po::bool_switch(), "print errors on held-out shapes and beyond the range")(
      "accuracy", po::bool_switch(),
      "print the held-out errors of the shipped calibrations as Markdown")(
      "parameters", po::bool_switch(), "print every parameter with its standard error")(
      "score", po::bool_switch(),
      "predict every row with an existing calibration instead of fitting")(
      "calibration", text(), "calibration file to score with or start from (default: shipped)")(
      "from", po::value<int>(), "fit each series from this many rows with the families' prior")(
      "transfer", po::bool_switch(),
      "predict the tables' device from the calibration of another (--calibration)")(
      "advise", text(), "what to measure next for one prediction: \"SERIES_ID NAME=VALUE,...\"")(
      "budget", po::value<double>()->default_value(60.0), "GPU seconds that --advise may plan")(
      "device", text(), "system name, where file name and columns do not say it")(
      "engine", text(), "likewise")("engine-version", text(), "likewise")(
      "data-source", text()->default_value("user measurements"), "who measured, for provenance")(
      "date", text(), "day to write into the file (default: today)")(
      "git-sha", text(), "commit of the program, for provenance")(
      "seed", po::value<std::uint64_t>()->default_value(1), "hold-out draw and starts")(
      "verbose,v", po::bool_switch(), "list every row that is set aside")("json", po::bool_switch(),
                                                                          "print JSON");
  const HelpText help{
      "fulcrum calibrate TABLE... [OPTIONS]",
      "Fits the cost laws to measured kernel times and says how wrong they still are: errors on\n"
      "shapes held out and beyond the fitted range, standard errors, what is not identified.\n"
      "Rows that cannot be right are set aside with a reason.",
      "  fulcrum calibrate h200_sxm__gemm__sglang__0.5.14__gemm_perf.csv --report -o h200.json"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"table"}, values)) return 0;
  if (values["accuracy"].as<bool>()) return calibrate_accuracy();
  if (values.count("table") == 0) {
    throw InputError({"command line", "TABLE", "no table given", "one or more CSV files"});
  }
  const auto devices = read_tables(values["table"].as<std::vector<std::string>>(), values);
  if (values["score"].as<bool>()) return calibrate_score(devices, values);
  if (values.count("from") != 0) return calibrate_few_shot(devices, values);
  if (values["transfer"].as<bool>()) return calibrate_transfer(devices, values);
  if (!(values["budget"].as<double>() > 0.0 && values["budget"].as<double>() <= 1e9)) {
    throw InputError({"command line", "--budget", "is out of range", "GPU seconds above 0"});
  }
  if (values.count("advise") != 0) return calibrate_advise(devices, values);
  return fit_devices(devices, values);
}

}  // namespace fulcrum::cli
