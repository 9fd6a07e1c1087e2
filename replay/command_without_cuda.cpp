#include <cstdio>
#include <cstring>

#include "replay/command.h"

namespace fulcrum::replay {

int run_replay_command(int argc, char** argv) {
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
