#include "cli/scenario_options.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/options.h"

namespace fulcrum::cli {

namespace po = boost::program_options;

po::options_description scenario_options() {
  po::options_description options("options");
  options.add_options()("scenario", po::value<std::string>()->default_value(kDefaultScenario),
                        "a scenario of data/scenarios or the path of a .json file (positional)")(
      "concurrency,c", po::value<std::string>(), "requests in flight, e.g. 1,8,16")(
      "set,s", po::value<std::vector<std::string>>()->composing(),
      "PATH=VALUE in the scenario, e.g. engine.cuda_graph=false; repeatable")(
      "json", po::bool_switch(), "machine-readable output");
  return options;
}

namespace {

/// The scenario's num_prompts belong to its own concurrencies: they stay with those that are asked
/// for, and are dropped when another one is.
void set_concurrency(io::ScenarioDocument& document, const std::vector<double>& wanted) {
  using nlohmann::json;
  static const json::json_pointer kConcurrency("/workload/concurrency");
  static const json::json_pointer kPrompts("/workload/num_prompts");
  const json before = document.value.value(kConcurrency, json::array());
  const json prompts = document.value.value(kPrompts, json::array());
  if (!before.is_array() || !prompts.is_array()) {
    io::set_value(document, "/workload/concurrency", json(wanted));
    return;
  }
  json kept = json::array();
  for (double concurrency : wanted) {
    const auto at = std::find(before.begin(), before.end(), json(concurrency));
    const auto index = static_cast<std::size_t>(at - before.begin());
    if (at == before.end() || index >= prompts.size()) continue;
    kept.push_back(prompts[index]);
  }
  if (kept.size() != wanted.size()) kept = json::array();
  io::set_value(document, "/workload/concurrency", json(wanted));
  if (!prompts.empty()) io::set_value(document, "/workload/num_prompts", kept);
}

}  // namespace

io::ScenarioDocument scenario_of(const po::variables_map& values) {
  io::ScenarioDocument document = io::read_scenario(values["scenario"].as<std::string>());
  if (values.count("set") != 0) {
    for (const std::string& assignment : values["set"].as<std::vector<std::string>>()) {
      const auto [path, value] = io::split_assignment(assignment);
      io::set_value(document, path, value);
    }
  }
  if (values.count("concurrency") != 0) {
    constexpr double kMost = 1e6;
    set_concurrency(document, parse_numbers(values["concurrency"].as<std::string>(),
                                            "--concurrency", 1.0, kMost));
  }
  return document;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) std::cerr << "note: " << warning << '\n';
}

}  // namespace fulcrum::cli
