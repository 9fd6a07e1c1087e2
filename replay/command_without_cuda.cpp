#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "replay/collectives/command.h"
#include "replay/command.h"

namespace fulcrum::replay {

int run_replay_command(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "collectives") {
    const std::string name = std::string(argv[0]) + " collectives";
    std::vector<char*> rest(argv + 1, argv + argc);
    rest[0] = const_cast<char*>(name.c_str());  // Only read.
    return collectives::run_collectives_command(argc - 1, rest.data());
  }
  constexpr const char* kReason =
      "this build has no CUDA: no CUDA compiler was found when it was configured (or "
      "FULCRUM_ENABLE_CUDA is off), "
      "so no kernel can run. Every other subcommand works.";
  if (argc > 1 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    std::printf(
        "Usage: %s [KERNEL ...] [options]\n"
        "Runs real kernels on this machine's GPU: checks their numbers, then times them.\n\n"
        "Example: %s --plan calibration -o h200.jsonl\n\n%s\n",
        argv[0], argv[0], kReason);
    return 0;
  }
  std::fprintf(stderr, "%s: %s\n", argv[0], kReason);
  return 1;
}

}  // namespace fulcrum::replay
