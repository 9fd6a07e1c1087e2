// Command-line options of `replay`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/plan.h"
#include "replay/roofline.h"
#include "replay/scenario_step.h"
#include "replay/worker.h"

namespace fulcrum::replay {

struct ReplayOptions {
  enum class Action { kHelp, kList, kPredict, kRun };
  Action action = Action::kRun;
  std::string help_text;
  std::vector<PlanItem> items;
  std::optional<ScenarioStep> scenario;  // The items are its kernels.
  std::string out_path;                  // Empty: only what is printed.
  Roofline roofline;                     // kPredict only.
  bool remeasure = false;
  WorkerOptions worker;
  double item_timeout_seconds = 120;
};

// Throws std::invalid_argument (or boost's own errors, which derive from std::exception) on bad
// usage.
ReplayOptions parse_options(int argc, const char* const* argv);

}  // namespace fulcrum::replay
