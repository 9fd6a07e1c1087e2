// `replay step`: options, the grid of cells, and the file of records.
#pragma once

namespace fulcrum::replay {

/// `argv[0]` is the program's name as shown to the user. Exit status: 0 ok, 1 run time, 2 usage.
int run_step_command(int argc, char** argv);

}  // namespace fulcrum::replay
