// A thin program for carrying to a GPU machine: only `replay`.
#include <string_view>

#include "replay/command.h"
#include "replay/step/step_command.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "step") {
    return fulcrum::replay::run_step_command(argc - 1, argv + 1);
  }
  return fulcrum::replay::run_replay_command(argc, argv);
}
