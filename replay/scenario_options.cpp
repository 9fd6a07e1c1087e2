#include "replay/scenario_options.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "model/io/load_scenario.h"

namespace fulcrum::replay {

namespace po = boost::program_options;

void add_scenario_options(po::options_description& options) {
  options.add_options()("scenario", po::value<std::string>(),
                        "every op of this scenario's decode step that a kernel here runs; with "
                        "--list only print them")(
      "concurrency", po::value<double>(), "requests in flight for --scenario (default: its first)")(
      "set", po::value<std::vector<std::string>>()->composing(),
      "PATH=VALUE in the scenario, e.g. parallel.tensor=2; repeatable");
}

std::optional<ScenarioStep> scenario_of(const po::variables_map& values) {
  if (values.count("scenario") == 0) {
    for (const char* option : {"concurrency", "set"}) {
      if (values.count(option) > 0) {
        throw std::invalid_argument(std::string("--") + option + " needs --scenario");
      }
    }
    return std::nullopt;
  }
  io::ScenarioDocument document = io::read_scenario(values["scenario"].as<std::string>());
  if (values.count("set") > 0) {
    for (const std::string& assignment : values["set"].as<std::vector<std::string>>()) {
      const auto [path, value] = io::split_assignment(assignment);
      io::set_value(document, path, value);
    }
  }
  std::vector<std::string> warnings;
  const Deployment deployment = io::resolve_scenario(document, warnings);
  for (const std::string& warning : warnings) std::fprintf(stderr, "note: %s\n", warning.c_str());
  double concurrency = deployment.workload.concurrency.front();
  if (values.count("concurrency") > 0) {
    concurrency = values["concurrency"].as<double>();
    constexpr double kMost = 1e6;
    if (!(concurrency >= 1.0) || concurrency > kMost || concurrency != std::floor(concurrency)) {
      throw std::invalid_argument("--concurrency: allowed: a whole number from 1 to 1000000");
    }
  }
  return scenario_step(deployment, concurrency);
}

void print_step(const ScenarioStep& step, const MeasuredSeconds& measured) {
  std::printf("%s at C=%.0f: %.0f requests, %.0f tokens a step, context %.0f\n\n",
              step.scenario.c_str(), step.concurrency, step.state.requests, step.state.tokens(),
              step.state.context);
  const bool timed = !measured.empty();
  std::printf("%-24s %5s  %s%s\n", "op", "count", timed ? "     us    all us  " : "",
              "kernel and shape");
  double total_seconds = 0.0;
  double launches = 0.0;
  double absent = 0.0;
  for (const ScenarioOp& op : step.ops) {
    std::printf("%-24s %5.0f  ", op.op.c_str(), op.count);
    if (op.binding.kernel.empty()) {
      absent += op.count;
      std::printf("%s- %s\n", timed ? "                   " : "", op.binding.absence.c_str());
      continue;
    }
    const double count = op.count * op.binding.launches;
    launches += count;
    const std::string key = op.binding.kernel + " " + op.binding.shape;
    if (const auto found = measured.find(key); found != measured.end()) {
      total_seconds += count * found->second;
      std::printf("%7.2f %9.1f  ", 1e6 * found->second, 1e6 * count * found->second);
    } else if (timed) {
      std::printf("%7s %9s  ", "-", "-");
    }
    std::printf("%s", key.c_str());
    if (op.binding.launches != 1.0) std::printf("  x %.0f", op.binding.launches);
    std::printf("\n");
  }
  std::printf("\n%.0f launches of kernels here, %.0f executions without one\n", launches, absent);
  if (timed) {
    std::printf("%.3f ms: sum of the kernels measured one at a time, without gaps and overlap\n",
                1e3 * total_seconds);
  }
}

}  // namespace fulcrum::replay
