// One decode step of a scenario as what `replay` can run: every op with its kernel and shape, or
// why there is none. No GPU and no CUDA needed.
#pragma once

#include <string>
#include <vector>

#include "model/deployment.h"
#include "replay/bind.h"

namespace fulcrum::replay {

struct ScenarioOp {
  std::string op;      // "wqkv_a"; of a draft model "draft.wqkv_a"
  double count = 0.0;  // executions per step on one rank
  Binding binding;
};

struct ScenarioStep {
  std::string scenario;
  double concurrency = 0.0;  // over all replicas
  StepState state;           // of one replica, whole requests
  std::vector<ScenarioOp> ops;
};

// The step at the batch that `concurrency` requests in flight lead to, at the workload's mean
// context; with speculation, the verification step and its drafts. Throws std::invalid_argument
// when no request fits.
ScenarioStep scenario_step(const Deployment& deployment, double concurrency,
                           const BindOptions& options = {});

// Kernels and shapes of the step without repetition, in the order of their first use.
struct ScenarioKernel {
  std::string kernel;
  std::string shape;
  double launches = 0.0;  // per step, all ops together
};
std::vector<ScenarioKernel> distinct_kernels(const ScenarioStep& step);

}  // namespace fulcrum::replay
