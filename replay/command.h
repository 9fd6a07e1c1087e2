// The subcommand `replay`, shared by the program `fulcrum` and the stand-alone binary
// `fulcrum_replay`.
#pragma once

namespace fulcrum::replay {

// argv[0] is the name to show in usage. Returns the exit code: 0 ok, 1 run-time failure (no GPU, a
// kernel failed verification, interrupted, disk full), 2 bad usage. Does not throw.
int run_replay_command(int argc, char** argv);

}  // namespace fulcrum::replay
