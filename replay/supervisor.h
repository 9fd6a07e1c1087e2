// Runs a plan in child processes, so that a crash, a lost context or a hung kernel costs one entry.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "replay/io/record.h"
#include "replay/plan.h"

namespace fulcrum::replay {

// What a child does with one item: returns the finished line, sets `stop` when the process is lost.
using RunItem = std::function<std::string(const PlanItem& item, bool& stop)>;

struct SupervisorOptions {
  double item_timeout_seconds = 120;  // Without a result for this long the child is killed.
};

struct SupervisorCallbacks {
  // A finished line of item `index`; throwing ends the run and is passed on.
  std::function<void(std::size_t index, const std::string& line)> finished;
  // The child died or was killed while item `index` ran.
  std::function<void(std::size_t index, const std::string& reason)> died;
  // Polled several times a second; true ends the run cleanly.
  std::function<bool()> interrupted;
};

// `make_runner` is called in each child, after the fork (CUDA must not be initialised in the
// parent). Returns false when interrupted.
bool supervise(const std::vector<PlanItem>& items, const std::function<RunItem()>& make_runner,
               const SupervisorOptions& options, const SupervisorCallbacks& callbacks);

// Runs `body` in a child and returns its text; a throwing body becomes std::runtime_error here.
std::string run_in_child(const std::function<std::string()>& body, double timeout_seconds);

}  // namespace fulcrum::replay
