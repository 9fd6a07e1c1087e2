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
    io::set_concurrency(document, parse_numbers(values["concurrency"].as<std::string>(),
                                                "--concurrency", 1.0, kMost));
  }
  return document;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) std::cerr << "note: " << warning << '\n';
}

}  // namespace fulcrum::cli
