#include "model/model_config.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fulcrum {

std::string_view name_of(DraftMethod method) {
  return method == DraftMethod::kMtp ? "mtp" : "dspark";
}

int ModelConfig::count(LayerKind kind) const {
  return static_cast<int>(std::count(layers.begin(), layers.end(), kind));
}

std::optional<std::string> tensor_parallel_problem(const ModelConfig& model, int tensor_parallel) {
  if (tensor_parallel < 1) return "tensor parallel degree must be at least 1";
  const std::array<std::pair<const char*, int>, 5> sharded{{
      {"o_groups", model.o_groups},
      {"num_attention_heads", model.num_heads},
      {"moe_intermediate_size", model.expert_inter},
      {"vocab_size", model.vocab},
      {"n_routed_experts", model.num_experts},
  }};
  for (const auto& [field, size] : sharded) {
    if (size % tensor_parallel != 0) {
      return std::string(field) + " = " + std::to_string(size) + " is not divisible by " +
             std::to_string(tensor_parallel);
    }
  }
  return std::nullopt;
}

}  // namespace fulcrum
