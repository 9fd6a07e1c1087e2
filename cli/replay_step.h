// The parts of `replay step` that need no GPU: tables from measured ops, predictions before a
// measurement, and both against each other.
#pragma once

#include "cli/command.h"

namespace fulcrum::cli {

/// `replay tabulate`: op_alone records -> data/calibration/op_tables/.
int run_replay_tabulate(const Arguments& arguments);
/// `replay predict-step`: what a kernel set says about a grid of steps, as JSON lines.
int run_replay_predict_step(const Arguments& arguments);
/// `replay compare`: predicted against measured steps, and their ops.
int run_replay_compare(const Arguments& arguments);

}  // namespace fulcrum::cli
