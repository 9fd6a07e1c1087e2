#include <cstdio>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "replay/collectives/command.h"
#include "replay/command.h"
#include "replay/scenario_options.h"

namespace fulcrum::replay {

int run_replay_command(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "collectives") {
    const std::string name = std::string(argv[0]) + " collectives";
    std::vector<char*> rest(argv + 1, argv + argc);
    rest[0] = const_cast<char*>(name.c_str());  // Only read.
    return collectives::run_collectives_command(argc - 1, rest.data());
  }
  namespace po = boost::program_options;
  constexpr const char* kReason =
      "this build has no CUDA: no CUDA compiler was found when it was configured (or "
      "FULCRUM_ENABLE_CUDA is off), so no kernel can run. Every other subcommand works, and "
      "--scenario S --list prints what would run.";
  po::options_description visible("Options that need no CUDA");
  visible.add_options()("help,h", "show this text")("list", "print the step of --scenario");
  add_scenario_options(visible);
  std::optional<ScenarioStep> step;
  try {
    po::variables_map values;
    // What only a build with CUDA knows is not judged here.
    po::store(po::command_line_parser(argc, argv).options(visible).allow_unregistered().run(),
              values);
    po::notify(values);
    if (values.count("help") > 0) {
      std::ostringstream options;
      options << visible;
      std::printf(
          "Usage: %s [KERNEL ...] [options]\n"
          "Runs real kernels on this machine's GPU: checks their numbers, then times them.\n\n"
          "Example: %s --plan calibration -o h200.jsonl\n"
          "         %s --scenario campaign-a --concurrency 16 --list\n\n%s\n\n%s\n",
          argv[0], argv[0], argv[0], kReason, options.str().c_str());
      return 0;
    }
    step = scenario_of(values);
    if (step && values.count("list") > 0) {
      print_step(*step);
      return 0;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
  std::fprintf(stderr, "%s: %s\n", argv[0], kReason);
  return 1;
}

}  // namespace fulcrum::replay
