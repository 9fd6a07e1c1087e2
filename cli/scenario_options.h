// Options every command that works on a scenario shares: SCENARIO, --concurrency, --set, --json.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "model/io/load_scenario.h"

namespace fulcrum::cli {

inline constexpr const char* kDefaultScenario = "campaign-a";

boost::program_options::options_description scenario_options();

/// Reads the named scenario and applies --concurrency and --set.
io::ScenarioDocument scenario_of(const boost::program_options::variables_map& values);

/// Prints warnings to stderr, one line each.
void print_warnings(const std::vector<std::string>& warnings);

}  // namespace fulcrum::cli
