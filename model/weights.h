// Weight bytes by component: as stored in the checkpoint, as held by one rank, as read by one step.
#pragma once

#include <array>
#include <string_view>

#include "model/model_config.h"
#include "model/units.h"

namespace fulcrum {

/// Components of a DeepSeek-V4 checkpoint, in the order of the published tensor lists.
enum class WeightComponent {
  kWqkvA,
  kWqB,
  kWoA,
  kWoB,
  kNorms,
  kRoutedExperts,
  kSharedExperts,
  kGate,
  kGateBias,  ///< routing bias, or token-id to expert-id table in hash layers
  kHyperConnections,
  kCompressors,
  kIndexerWqB,
  kIndexerWeightsProj,
  kIndexerCompressors,
  kEmbedding,
  kHead,
  kHeadNorm,  ///< final norm and hc_head
  kMtp,       ///< whole draft layers, their experts included
};
inline constexpr int kNumWeightComponents = 18;
std::string_view name_of(WeightComponent component);

/// Choices an engine makes at load time that change resident bytes.
struct WeightLayout {
  int tensor_parallel = 1;
  bool wo_a_bf16 = false;             ///< SGLang on SM120 keeps wo_a in BF16
  bool mxfp4_scales_as_fp32 = false;  ///< SGLang before PR 30272 (July 2026)
  bool load_mtp = true;
};

struct WeightBytes {
  std::array<Bytes, kNumWeightComponents> by_component{};
  Bytes of(WeightComponent component) const {
    return by_component[static_cast<std::size_t>(component)];
  }
  Bytes total() const;     ///< everything
  Bytes backbone() const;  ///< without the draft layers
};

/// Bytes of one expert's three matrices (gate, up, down) at full width, scales included.
Bytes expert_bytes(const ModelConfig& model, ExpertFormat format, bool scales_as_fp32 = false);

/// FP8 matrix [n,k] with one E8M0 scale per block; source: safetensors headers, facts section 3.
Bytes fp8_block_matrix_bytes(const ModelConfig& model, double n, double k);

/// Bytes in the checkpoint (TP 1, as published).
WeightBytes checkpoint_bytes(const ModelConfig& model);

/// Bytes resident on one rank. The layout's TP must divide the model (tensor_parallel_problem).
WeightBytes rank_bytes(const ModelConfig& model, const WeightLayout& layout);

/// Weight bytes one rank reads in one forward pass whose tokens touch `distinct_experts` experts
/// per layer: all but the embedding table, the id table and the untouched experts. No draft layer.
Bytes bytes_read_per_step(const ModelConfig& model, const WeightLayout& layout,
                          double distinct_experts);

}  // namespace fulcrum
