// `replay` parses its own options, so that the stand-alone program for GPU machines has the same
// ones.
#include "cli/command.h"
#include "cli/replay_step.h"
#include "replay/command.h"
#include "replay/step/step_command.h"

namespace fulcrum::cli {

int run_replay(const Arguments& arguments) {
  if (!arguments.empty()) {
    const Arguments rest(arguments.begin() + 1, arguments.end());
    if (arguments[0] == "tabulate") return run_replay_tabulate(rest);
    if (arguments[0] == "predict-step") return run_replay_predict_step(rest);
    if (arguments[0] == "compare") return run_replay_compare(rest);
  }
  const bool is_step = !arguments.empty() && arguments[0] == "step";
  std::vector<std::string> words = {is_step ? "fulcrum replay step" : "fulcrum replay"};
  words.insert(words.end(), arguments.begin() + (is_step ? 1 : 0), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  if (is_step) return replay::run_step_command(static_cast<int>(argv.size()), argv.data());
  return replay::run_replay_command(static_cast<int>(argv.size()), argv.data());
}

}  // namespace fulcrum::cli
