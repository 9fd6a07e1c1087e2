#include "replay/scenario_step.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/memory.h"

namespace fulcrum::replay {

ScenarioStep scenario_step(const Deployment& deployment, double concurrency,
                           const BindOptions& options) {
  const Workload& work = deployment.workload;
  const double context = work.input_tokens + work.output_tokens / 2.0;
  const double per_replica = concurrency / std::min(deployment.replicas(), concurrency);
  ScenarioStep step{
      .scenario = deployment.name, .concurrency = concurrency, .state = {}, .ops = {}};
  step.state.requests = std::floor(effective_batch(deployment, per_replica, context).requests);
  if (step.state.requests < 1.0) {
    throw std::invalid_argument("scenario " + deployment.name + ": not one request of " +
                                std::to_string(std::llround(context)) + " tokens fits");
  }
  step.state.tokens_per_request = 1.0 + deployment.speculation.draft_tokens;
  step.state.context = context;
  step.state.logits_rows = step.state.tokens();
  const StepGraph graph = build_step_graph(deployment.model, deployment.graph_settings());
  for (const StepOp& op : graph.ops) {
    step.ops.push_back({.op = (op.draft ? "draft." : "") + std::string(name_of(op.id)),
                        .count = op.count,
                        .binding = bind_op(graph, op, step.state, options)});
  }
  return step;
}

std::vector<ScenarioKernel> distinct_kernels(const ScenarioStep& step) {
  std::vector<ScenarioKernel> kernels;
  for (const ScenarioOp& op : step.ops) {
    if (op.binding.kernel.empty()) continue;
    const auto known = std::find_if(kernels.begin(), kernels.end(), [&](const ScenarioKernel& k) {
      return k.kernel == op.binding.kernel && k.shape == op.binding.shape;
    });
    const double launches = op.count * op.binding.launches;
    if (known != kernels.end()) {
      known->launches += launches;
    } else {
      kernels.push_back(
          {.kernel = op.binding.kernel, .shape = op.binding.shape, .launches = launches});
    }
  }
  return kernels;
}

}  // namespace fulcrum::replay
