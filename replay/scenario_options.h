// `replay --scenario`: its options, shared by builds with and without CUDA, and what they print.
#pragma once

#include <boost/program_options.hpp>
#include <map>
#include <optional>
#include <string>

#include "replay/scenario_step.h"

namespace fulcrum::replay {

void add_scenario_options(boost::program_options::options_description& options);

// The step that the options name, if they name one. Throws std::invalid_argument on bad usage and
// InputError on a bad scenario.
std::optional<ScenarioStep> scenario_of(const boost::program_options::variables_map& values);

// Median seconds of measured items, by "KERNEL SHAPE" with the shape as a binding gives it.
using MeasuredSeconds = std::map<std::string, double>;

// Prints a line per op: count, kernel and shape, or why there is none; with `measured`, the time of
// one launch and of all, and the sum over what was measured.
void print_step(const ScenarioStep& step, const MeasuredSeconds& measured = {});

}  // namespace fulcrum::replay
