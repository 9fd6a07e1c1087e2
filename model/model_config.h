// A DeepSeek-V4 model as its published config.json states it. Shapes only; what they cost is
// weights.h, kv_cache.h and step_graph.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fulcrum {

/// How a layer attends. The kind follows from the layer's compress ratio.
enum class LayerKind {
  kSwa,  ///< sliding window only (ratio 0)
  kCsa,  ///< compressed sparse attention: window + indexed rows (ratio 4)
  kHca,  ///< heavily compressed attention: window + all pooled rows (ratio 128)
};
inline constexpr int kNumLayerKinds = 3;

/// Storage of the routed experts.
enum class ExpertFormat {
  kMxfp4,  ///< E2M1 with one E8M0 scale per 32 along K
  kNvfp4,  ///< E2M1 with one E4M3 scale per 16 along K
};

/// How a model drafts tokens for itself.
enum class DraftMethod {
  kMtp,     ///< K passes of one layer with a shared head
  kDspark,  ///< one pass through a few stages drafts a block, a Markov head orders it
};
std::string_view name_of(DraftMethod method);

struct ModelConfig {
  std::string name;  ///< file stem, e.g. "deepseek-v4-flash"
  int hidden = 0;
  int num_layers = 0;
  int num_heads = 0;
  int head_dim = 0;
  int rope_dim = 0;
  int q_lora = 0;
  int o_lora = 0;
  int o_groups = 0;
  int index_heads = 0;
  int index_dim = 0;
  int index_top_k = 0;
  int window = 0;
  int num_experts = 0;
  int num_shared_experts = 0;
  int top_k = 0;
  int expert_inter = 0;
  int num_hash_layers = 0;
  int hc_streams = 0;
  int sinkhorn_iterations = 0;
  int vocab = 0;
  int num_mtp_layers = 0;  ///< draft layers: MTP layers, or DSpark stages
  DraftMethod draft_method = DraftMethod::kMtp;
  int draft_experts = 0;  ///< routed experts of a draft layer
  int draft_top_k = 0;
  int dspark_block = 0;  ///< tokens the checkpoint was trained to draft at once
  int dspark_markov_rank = 0;
  int dspark_target_layers = 0;  ///< backbone layers whose hidden states the first stage reads
  int max_position = 0;
  int fp8_block_n = 0;
  int fp8_block_k = 0;
  ExpertFormat expert_format = ExpertFormat::kMxfp4;
  ExpertFormat mtp_expert_format = ExpertFormat::kMxfp4;
  int csa_ratio = 4;
  int hca_ratio = 128;
  std::vector<LayerKind> layers;  ///< num_layers entries

  int count(LayerKind kind) const;
  int num_non_hash_layers() const { return num_layers - num_hash_layers; }
};

/// Why `tensor_parallel` cannot shard the model, naming the config field; nothing when it can.
std::optional<std::string> tensor_parallel_problem(const ModelConfig& model, int tensor_parallel);

}  // namespace fulcrum
