#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "cli/options.h"
#include "cli/replay_step.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/interval.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// TP, requests, drafts, context, collectives, side streams.
using Key = std::tuple<int, int, int, int, bool, bool>;

struct Step {
  Interval seconds;  ///< all three the same where measured
  std::string status;
  std::map<std::string, std::pair<double, double>> ops;  ///< executions, seconds
};
using Steps = std::map<Key, Step>;

Steps read_steps(const std::string& path, bool measured) {
  std::ifstream in(path);
  if (!in) throw InputError({path, "", "cannot be read", "a file of JSON lines"});
  Steps steps;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    try {
      const Json json = Json::parse(line);
      if (measured ? json.at("record") != "step"
                   : json.at("schema") != "fulcrum/step_prediction/1") {
        continue;
      }
      const bool collectives =
          measured ? json.at("num_gpus").get<int>() > 1 : json.at("collectives").get<bool>();
      const Key key{json.at("tensor_parallel"), json.at("requests"), json.at("draft_tokens"),
                    json.at("context_tokens"),  collectives,         json.at("side_streams")};
      Step step;
      step.status = measured ? json.at("status").get<std::string>() : "ok";
      if (step.status == "skipped" || step.status == "failed") continue;
      if (measured) {
        const double median = json.at("median_seconds");
        step.seconds = {median, median, median};
      } else {
        const Json& q = json.at("step_seconds");
        step.seconds = {q.at("p05"), q.at("p50"), q.at("p95")};
      }
      for (const Json& op : json.value("ops", Json::array())) {
        auto& [executions, seconds] = step.ops[op.at("op").get<std::string>()];
        executions += op.at("executions").get<double>();
        seconds += op.at("seconds").get<double>();
      }
      steps.insert_or_assign(key, step);
    } catch (const Json::exception& error) {
      throw InputError({path, "line " + std::to_string(number), error.what(),
                        measured ? "records of `replay step`" : "lines of `replay predict-step`"});
    }
  }
  return steps;
}

struct Scored {
  Key key;
  double predicted_seconds = 0.0;
  double measured_seconds = 0.0;
  bool covered = false;
  std::string status;
  double error() const { return predicted_seconds / measured_seconds - 1.0; }
};

struct Summary {
  std::size_t n = 0;
  double mape = 0.0;
  double bias = 0.0;
  double worst = 0.0;
  double coverage = 0.0;
};

Summary summarize(const std::vector<Scored>& cells) {
  Summary s{.n = cells.size()};
  for (const Scored& cell : cells) {
    s.mape += std::fabs(cell.error());
    s.bias += cell.error();
    s.worst = std::max(s.worst, std::fabs(cell.error()));
    s.coverage += cell.covered ? 1.0 : 0.0;
  }
  const double n = std::max<double>(1.0, static_cast<double>(s.n));
  s.mape /= n;
  s.bias /= n;
  s.coverage /= n;
  return s;
}

Json to_json(const Summary& s) {
  return {{"n", s.n},
          {"mape", s.mape},
          {"bias", s.bias},
          {"worst", s.worst},
          {"coverage_fraction_of_90", s.coverage}};
}

struct OpErrors {
  std::vector<double> per_execution_seconds;  ///< predicted less measured
  double predicted_seconds = 0.0;             ///< summed over cells
  double measured_seconds = 0.0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void print_cells(const std::vector<Scored>& cells) {
  Table table({{"TP"},
               {"batch"},
               {"drafts"},
               {"context"},
               {"predicted"},
               {"measured"},
               {"error"},
               {"in 90 %", Align::kLeft},
               {"note", Align::kLeft}});
  for (const Scored& c : cells) {
    const auto& [tp, batch, drafts, context, collectives, side] = c.key;
    std::string note = c.status == "ok" ? "" : c.status;
    if (collectives) note += note.empty() ? "with collectives" : ", with collectives";
    if (side) note += note.empty() ? "side streams" : ", side streams";
    table.add({std::to_string(tp), std::to_string(batch), std::to_string(drafts),
               std::to_string(context), format_seconds(c.predicted_seconds),
               format_seconds(c.measured_seconds), format_percent(c.error()),
               c.covered ? "yes" : "no", note});
  }
  table.print(std::cout, TerminalStyle::of_stdout());
}

/// One line for each TP degree and number of drafts, and one for all.
void print_summary(const std::vector<Scored>& cells) {
  std::map<std::pair<int, int>, std::vector<Scored>> groups;
  for (const Scored& c : cells) groups[{std::get<0>(c.key), std::get<2>(c.key)}].push_back(c);
  Table table({{"TP"}, {"drafts"}, {"steps"}, {"mean error"}, {"bias"}, {"worst"}, {"in 90 %"}});
  const auto add = [&](std::string tp, std::string drafts, const std::vector<Scored>& group) {
    const Summary s = summarize(group);
    table.add({std::move(tp), std::move(drafts), std::to_string(s.n), format_percent(s.mape),
               format_percent(s.bias), format_percent(s.worst), format_percent(s.coverage)});
  };
  for (const auto& [key, group] : groups) {
    add(std::to_string(key.first), std::to_string(key.second), group);
  }
  add("all", "", cells);
  table.print(std::cout, TerminalStyle::of_stdout());
}

void print_ops(const std::map<std::string, OpErrors>& ops) {
  std::vector<std::pair<std::string, const OpErrors*>> sorted;
  for (const auto& [name, errors] : ops) sorted.emplace_back(name, &errors);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second->measured_seconds > b.second->measured_seconds;
  });
  double total = 0.0;
  for (const auto& [name, errors] : ops) total += errors.measured_seconds;
  Table table({{"op", Align::kLeft}, {"share"}, {"error of its sum"}, {"median per execution"}});
  for (const auto& [name, errors] : sorted) {
    const double per_execution = median(errors->per_execution_seconds);
    table.add({name, format_percent(errors->measured_seconds / total),
               format_percent(errors->predicted_seconds / errors->measured_seconds - 1.0),
               (per_execution < 0.0 ? "-" : "+") + format_seconds(std::fabs(per_execution))});
  }
  std::cout << "\nops inside the steps, predicted against measured:\n";
  table.print(std::cout, TerminalStyle::of_stdout());
}

}  // namespace

int run_replay_compare(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("predicted", po::value<std::string>(), "lines of `replay predict-step`")(
      "measured", po::value<std::string>(), "records of `replay step`")(
      "check", po::bool_switch(),
      "fail (exit 1) above 3 % mean or 8 % worst error, or outside 85-95 % coverage")(
      "ops", po::bool_switch(), "also every op's error")("drafts", po::value<int>(),
                                                         "only steps with that many drafts")(
      "summary", po::bool_switch(), "a line for each TP degree and number of drafts, no cells")(
      "json", po::bool_switch(), "machine-readable (fulcrum/step_comparison/1)");
  po::variables_map values;
  if (!parse(arguments,
             {.usage = "fulcrum replay compare PREDICTED MEASURED [OPTIONS]",
              .description = "Scores predicted against measured steps, cell by cell, and the ops "
                             "inside them.",
              .example = "fulcrum replay compare predicted.jsonl step.jsonl --ops"},
             options, {"predicted", "measured"}, values)) {
    return 0;
  }
  if (values.count("predicted") == 0 || values.count("measured") == 0) {
    throw InputError({"command line", "PREDICTED MEASURED", "two files are needed", "see --help"});
  }
  const Steps predicted = read_steps(values["predicted"].as<std::string>(), false);
  const Steps measured = read_steps(values["measured"].as<std::string>(), true);
  std::vector<Scored> cells;
  std::map<std::string, OpErrors> ops;
  for (const auto& [key, step] : measured) {
    if (values.count("drafts") != 0 && std::get<2>(key) != values["drafts"].as<int>()) continue;
    const auto found = predicted.find(key);
    if (found == predicted.end()) continue;
    const Step& wanted = found->second;
    const double seconds = step.seconds.p50;
    cells.push_back({key, wanted.seconds.p50, seconds,
                     wanted.seconds.p05 <= seconds && seconds <= wanted.seconds.p95, step.status});
    for (const auto& [name, op] : step.ops) {
      const auto mine = wanted.ops.find(name);
      if (mine == wanted.ops.end()) continue;
      OpErrors& errors = ops[name];
      errors.predicted_seconds += mine->second.second;
      errors.measured_seconds += op.second;
      errors.per_execution_seconds.push_back((mine->second.second - op.second) / op.first);
    }
  }
  if (cells.empty()) {
    throw InputError({values["measured"].as<std::string>(), "", "no measured step has a prediction",
                      "the same TP, batch, drafts, context, collectives and side streams"});
  }
  const Summary summary = summarize(cells);
  if (values["json"].as<bool>()) {
    Json json = {{"schema", "fulcrum/step_comparison/1"}, {"summary", to_json(summary)}};
    json["cells"] = Json::array();
    for (const Scored& c : cells) {
      const auto& [tp, batch, drafts, context, collectives, side] = c.key;
      json["cells"].push_back({{"tensor_parallel", tp},
                               {"requests", batch},
                               {"draft_tokens", drafts},
                               {"context_tokens", context},
                               {"collectives", collectives},
                               {"side_streams", side},
                               {"predicted_seconds", c.predicted_seconds},
                               {"measured_seconds", c.measured_seconds},
                               {"error", c.error()},
                               {"covered", c.covered},
                               {"status", c.status}});
    }
    json["ops"] = Json::array();
    for (const auto& [name, e] : ops) {
      json["ops"].push_back({{"op", name},
                             {"predicted_seconds", e.predicted_seconds},
                             {"measured_seconds", e.measured_seconds},
                             {"median_error_seconds", median(e.per_execution_seconds)}});
    }
    std::cout << json.dump(1) << '\n';
  } else if (values["summary"].as<bool>()) {
    print_summary(cells);
  } else {
    print_cells(cells);
    std::cout << summary.n << " steps: mean error " << format_percent(summary.mape) << ", bias "
              << format_percent(summary.bias) << ", worst " << format_percent(summary.worst)
              << "; the 90 % interval covers " << format_percent(summary.coverage) << '\n';
    if (values["ops"].as<bool>()) print_ops(ops);
  }
  constexpr double kMape = 0.03;
  constexpr double kWorst = 0.08;
  constexpr double kLowestCoverage = 0.85;
  constexpr double kHighestCoverage = 0.95;
  const bool good = summary.mape <= kMape && summary.worst <= kWorst &&
                    summary.coverage >= kLowestCoverage && summary.coverage <= kHighestCoverage;
  return values["check"].as<bool>() && !good ? 1 : 0;
}

}  // namespace fulcrum::cli
