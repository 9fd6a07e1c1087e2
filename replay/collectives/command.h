// The subcommand `replay collectives`.
#pragma once

#include <string>
#include <vector>

#include "replay/collectives/prior.h"
#include "replay/collectives/setting.h"

namespace fulcrum::replay::collectives {

struct CommandOptions {
  std::vector<Setting> settings;
  std::vector<std::int64_t> sizes_bytes;
  std::vector<LaunchKind> launches;
  std::vector<int> devices;  ///< empty: all that CUDA sees
  std::string out_path;      ///< empty: only what is printed
  bool json = false;
  double setting_timeout_seconds = 120.0;
};

/// argv[0] is the name to show. Returns the exit code as run_replay_command does.
int run_collectives_command(int argc, char** argv);

/// The measurement itself; a build without CUDA says so and returns 1. May throw.
int run_collectives(const CommandOptions& options, const std::vector<std::string>& argv);

}  // namespace fulcrum::replay::collectives
