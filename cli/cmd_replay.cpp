// `replay` parses its own options, so that the stand-alone program for GPU machines has the same
// ones.
#include "cli/command.h"
#include "replay/command.h"

namespace fulcrum::cli {

int run_replay(const Arguments& arguments) {
  std::vector<std::string> words = {"fulcrum replay"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return replay::run_replay_command(static_cast<int>(argv.size()), argv.data());
}

}  // namespace fulcrum::cli
