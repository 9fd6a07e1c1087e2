#include <cstdio>

#include "replay/command.h"

namespace fulcrum::replay {

int run_replay_command(int, char** argv) {
  std::fprintf(stderr,
               "%s: this build has no CUDA: no CUDA compiler was found when it was configured (or "
               "FULCRUM_ENABLE_CUDA is off), so no kernel can run. Every other subcommand works.\n",
               argv[0]);
  return 1;
}

}  // namespace fulcrum::replay
