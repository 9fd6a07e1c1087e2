#include "model/deployment.h"

namespace fulcrum {

GraphSettings Deployment::graph_settings() const {
  GraphSettings settings;
  settings.tensor_parallel = tensor_parallel;
  settings.expert_parallel = expert_parallel;
  settings.max_context = engine.max_context_tokens;
  settings.routing = routing;
  settings.power_law_alpha = power_law_alpha;
  settings.neighbour_correlation = neighbour_correlation;
  settings.draft_method = speculation.method;
  settings.num_draft_tokens = speculation.draft_tokens;
  settings.traits = kernels.traits;
  return settings;
}

LawDevice Deployment::law_device() const {
  return fulcrum::law_device(hardware, topology ? hardware.link(*topology) : nullptr);
}

}  // namespace fulcrum
