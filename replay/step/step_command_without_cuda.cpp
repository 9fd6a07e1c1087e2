#include <cstdio>
#include <exception>

#include "model/io/data_dir.h"
#include "model/io/load_model.h"
#include "replay/step/step_command.h"
#include "replay/step/step_options.h"

namespace fulcrum::replay {

int run_step_command(int argc, char** argv) {
  try {
    const StepOptions options = parse_step_options(argc, argv);
    if (options.action == StepOptions::Action::kHelp) {
      std::printf("%s", options.help_text.c_str());
      return 0;
    }
    if (options.action == StepOptions::Action::kList) {
      print_schedule(
          options, io::load_model(io::resolve("models", options.model, "command line", "--model")));
      return 0;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
  std::fprintf(stderr, "%s: this build has no CUDA, so no step can run; --list works\n", argv[0]);
  return 1;
}

}  // namespace fulcrum::replay
