#include "model/deployment.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fulcrum {

LengthSpread LengthSpread::uniform(double ratio) {
  if (ratio >= 1.0) return {};
  return {Kind::kUniform, (1.0 - ratio) / std::numbers::sqrt3};
}

LengthSpread LengthSpread::log_normal(double cv) {
  if (cv <= 0.0) return {};
  return {Kind::kLogNormal, cv};
}

double LengthSpread::factor(double u, double v) const {
  if (kind == Kind::kFixed) return 1.0;
  if (kind == Kind::kUniform) return 1.0 + cv * std::numbers::sqrt3 * (2.0 * u - 1.0);
  const double variance = std::log1p(cv * cv);
  const double normal =  // Box and Muller; 1 - u is never zero
      std::sqrt(-2.0 * std::log(1.0 - u)) * std::cos(2.0 * std::numbers::pi * v);
  return std::exp(std::sqrt(variance) * normal - variance / 2.0);
}

std::optional<double> Workload::prompts_at(double stated_concurrency) const {
  if (num_prompts.size() != concurrency.size()) return std::nullopt;
  const auto at = std::find(concurrency.begin(), concurrency.end(), stated_concurrency);
  if (at == concurrency.end()) return std::nullopt;
  const double prompts = num_prompts[static_cast<std::size_t>(at - concurrency.begin())];
  return prompts >= stated_concurrency ? std::optional(prompts) : std::nullopt;
}

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
