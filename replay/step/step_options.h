// Command line of `replay step`. No CUDA.
#pragma once

#include <string>
#include <vector>

#include "replay/step/schedule.h"

namespace fulcrum::replay {

struct StepOptions {
  enum class Action { kHelp, kList, kAlone, kStep };
  Action action = Action::kStep;
  std::string help_text;
  std::string model = "deepseek-v4-flash";
  std::vector<int> tensor_parallel{4};
  std::vector<int> batches{1};
  std::vector<int> contexts{8192};
  std::vector<int> drafts{0};
  bool side_streams = false;
  bool eager = true;
  bool per_op = true;
  int num_gpus = 1;  ///< 1: one rank alone; else all ranks of the step
  std::uint64_t seed = 1;
  std::string out_path;

  std::vector<StepCell> cells() const;  ///< drafts, then context, then batch
};

/// Throws std::exception (with a message for the user) on bad usage.
StepOptions parse_step_options(int argc, const char* const* argv);

/// The graph of one rank for this repository's kernels: heads and rows as they are launched here.
StepGraph reference_graph(const ModelConfig& model, int tensor_parallel, int draft_tokens);

/// Prints the launches of one step of each TP degree in order.
void print_schedule(const StepOptions& options, const ModelConfig& model);

}  // namespace fulcrum::replay
