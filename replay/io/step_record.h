// Records of `replay step` in a measurement file (schema "fulcrum/measurement/1"): "op_alone" and
// "step" lines behind a session line.
#pragma once

#include <string>

#include "replay/io/record.h"
#include "replay/step/runner.h"

namespace fulcrum::replay {

/// Where a record was taken.
struct StepPlace {
  std::string session;
  std::string model;
  int tensor_parallel = 1;
  int num_gpus = 1;
  bool side_streams = false;
};

std::string op_alone_to_line(const StepPlace& place, const StepCell& cell, const OpAlone& op);
std::string step_to_line(const StepPlace& place, const StepCell& cell, const StepGraph& graph,
                         const StepMeasurement& step);
/// A cell that was not measured, and why.
std::string skipped_step_to_line(const StepPlace& place, const StepCell& cell,
                                 const std::string& why);

}  // namespace fulcrum::replay
