#include "model/weights.h"

#include <cmath>
#include <numeric>

namespace fulcrum {
namespace {

constexpr double kBf16Bytes = 2.0;
constexpr double kFp32Bytes = 4.0;
constexpr double kInt64Bytes = 8.0;

constexpr std::size_t index_of(WeightComponent component) {
  return static_cast<std::size_t>(component);
}

/// Divides what tensor parallelism shards; replicated components are left whole.
struct LayerShapes {
  const ModelConfig& model;
  double tp;
  bool wo_a_bf16;

  Bytes wqkv_a() const {
    return fp8_block_matrix_bytes(model, model.q_lora, model.hidden) +
           fp8_block_matrix_bytes(model, model.head_dim, model.hidden);
  }
  Bytes wq_b() const {
    return fp8_block_matrix_bytes(model, static_cast<double>(model.num_heads) * model.head_dim,
                                  model.q_lora) /
           tp;
  }
  Bytes wo_a() const {
    const double k = static_cast<double>(model.num_heads) * model.head_dim / model.o_groups;
    const Bytes one = wo_a_bf16 ? Bytes(model.o_lora * k * kBf16Bytes)
                                : fp8_block_matrix_bytes(model, model.o_lora, k);
    return one * model.o_groups / tp;
  }
  Bytes wo_b() const {
    return fp8_block_matrix_bytes(model, model.hidden,
                                  static_cast<double>(model.o_groups) * model.o_lora) /
           tp;
  }
  Bytes norms() const {  // q, kv, attention and ffn norms in BF16; one FP32 sink per head
    return Bytes((model.q_lora + model.head_dim + 2.0 * model.hidden) * kBf16Bytes +
                 model.num_heads * kFp32Bytes / tp);
  }
  Bytes shared_experts() const {
    const double inter = static_cast<double>(model.expert_inter) * model.num_shared_experts;
    return (2.0 * fp8_block_matrix_bytes(model, inter, model.hidden) +
            fp8_block_matrix_bytes(model, model.hidden, inter)) /
           tp;
  }
  Bytes gate(int experts) const {
    return Bytes(static_cast<double>(experts) * model.hidden * kBf16Bytes);
  }
  static Bytes gate_bias(int experts) { return Bytes(experts * kFp32Bytes); }
  /// w1 is split over the vocabulary, w2 is not (step_graph.cpp).
  Bytes markov() const {
    return Bytes(static_cast<double>(model.vocab) * model.dspark_markov_rank * kBf16Bytes) *
           (1.0 + 1.0 / tp);
  }
  Bytes confidence() const { return Bytes((model.hidden + model.dspark_markov_rank) * kBf16Bytes); }
  Bytes hash_table() const {
    return Bytes(static_cast<double>(model.vocab) * model.top_k * kInt64Bytes);
  }
  double hc_mix_rows() const {
    return 2.0 * model.hc_streams + model.hc_streams * model.hc_streams;
  }
  Bytes hyper_connections() const {  // two sites: fn, a bias per row, three scales
    const double k = static_cast<double>(model.hc_streams) * model.hidden;
    return Bytes(2.0 * (hc_mix_rows() * k + hc_mix_rows() + 3.0) * kFp32Bytes);
  }
  Bytes hc_head() const {
    const double k = static_cast<double>(model.hc_streams) * model.hidden;
    return Bytes((model.hc_streams * k + model.hc_streams + 1.0) * kFp32Bytes);
  }
  /// wkv and wgate in BF16, the position table in FP32, a BF16 norm of `dim`.
  Bytes compressor(double rows, double ratio, double dim) const {
    return Bytes(2.0 * rows * model.hidden * kBf16Bytes + ratio * rows * kFp32Bytes +
                 dim * kBf16Bytes);
  }
  // CSA pools 2 x ratio overlapping tokens, so its projections are twice as wide.
  Bytes csa_compressor() const {
    return compressor(2.0 * model.head_dim, model.csa_ratio, model.head_dim);
  }
  Bytes hca_compressor() const {
    return compressor(model.head_dim, model.hca_ratio, model.head_dim);
  }
  Bytes indexer_compressor() const {
    return compressor(2.0 * model.index_dim, model.csa_ratio, model.index_dim);
  }
  Bytes indexer_wq_b() const {
    return fp8_block_matrix_bytes(model, static_cast<double>(model.index_heads) * model.index_dim,
                                  model.q_lora);
  }
  Bytes indexer_weights_proj() const {
    return Bytes(static_cast<double>(model.index_heads) * model.hidden * kBf16Bytes);
  }
  Bytes vocab_matrix() const {
    return Bytes(static_cast<double>(model.vocab) * model.hidden * kBf16Bytes / tp);
  }
};

WeightBytes bytes_of(const ModelConfig& model, const WeightLayout& layout) {
  const LayerShapes layer{model, static_cast<double>(layout.tensor_parallel), layout.wo_a_bf16};
  const double layers = model.num_layers;
  const double csa = model.count(LayerKind::kCsa);
  const double hca = model.count(LayerKind::kHca);
  const Bytes norm_of_hidden(model.hidden * kBf16Bytes);
  const auto experts = [&](ExpertFormat format, int count) {
    return expert_bytes(model, format, layout.mxfp4_scales_as_fp32) * count / layer.tp;
  };

  WeightBytes bytes;
  auto& by = bytes.by_component;
  const auto set = [&](WeightComponent c, Bytes value) { by[index_of(c)] = value; };
  set(WeightComponent::kWqkvA, layers * layer.wqkv_a());
  set(WeightComponent::kWqB, layers * layer.wq_b());
  set(WeightComponent::kWoA, layers * layer.wo_a());
  set(WeightComponent::kWoB, layers * layer.wo_b());
  set(WeightComponent::kNorms, layers * layer.norms());
  set(WeightComponent::kRoutedExperts, layers * experts(model.expert_format, model.num_experts));
  set(WeightComponent::kSharedExperts, layers * layer.shared_experts());
  set(WeightComponent::kGate, layers * layer.gate(model.num_experts));
  set(WeightComponent::kGateBias,
      model.num_non_hash_layers() * LayerShapes::gate_bias(model.num_experts) +
          model.num_hash_layers * layer.hash_table());
  set(WeightComponent::kHyperConnections, layers * layer.hyper_connections());
  set(WeightComponent::kCompressors, csa * layer.csa_compressor() + hca * layer.hca_compressor());
  set(WeightComponent::kIndexerWqB, csa * layer.indexer_wq_b());
  set(WeightComponent::kIndexerWeightsProj, csa * layer.indexer_weights_proj());
  set(WeightComponent::kIndexerCompressors, csa * layer.indexer_compressor());
  set(WeightComponent::kEmbedding, layer.vocab_matrix());
  set(WeightComponent::kHead, layer.vocab_matrix());
  set(WeightComponent::kHeadNorm, norm_of_hidden + layer.hc_head());
  if (layout.load_mtp) {
    // SWA decoder layers with routed experts of their own.
    const Bytes decoder = layer.wqkv_a() + layer.wq_b() + layer.wo_a() + layer.wo_b() +
                          layer.norms() + experts(model.mtp_expert_format, model.draft_experts) +
                          layer.shared_experts() + layer.gate(model.draft_experts) +
                          LayerShapes::gate_bias(model.draft_experts) + layer.hyper_connections();
    if (model.draft_method == DraftMethod::kDspark) {
      // First stage: main_proj and its norm. Last stage: norm, hc_head, Markov and confidence
      // heads.
      const Bytes main_proj = fp8_block_matrix_bytes(
          model, model.hidden, static_cast<double>(model.dspark_target_layers) * model.hidden);
      const Bytes heads = layer.markov() + layer.confidence() + layer.hc_head();
      set(WeightComponent::kMtp,
          model.num_mtp_layers * decoder + main_proj + 2.0 * norm_of_hidden + heads);
    } else {
      // Each layer: two projections, three norms, own hc_head.
      const Bytes projections = 2.0 * fp8_block_matrix_bytes(model, model.hidden, model.hidden);
      set(WeightComponent::kMtp,
          model.num_mtp_layers * (projections + 3.0 * norm_of_hidden + decoder + layer.hc_head()));
    }
  }
  return bytes;
}

}  // namespace

std::string_view name_of(WeightComponent component) {
  constexpr std::array<std::string_view, kNumWeightComponents> kNames{"wqkv_a",
                                                                      "wq_b",
                                                                      "wo_a",
                                                                      "wo_b",
                                                                      "norms",
                                                                      "routed_experts",
                                                                      "shared_experts",
                                                                      "gate",
                                                                      "gate_bias",
                                                                      "hyper_connections",
                                                                      "compressors",
                                                                      "indexer_wq_b",
                                                                      "indexer_weights_proj",
                                                                      "indexer_compressors",
                                                                      "embedding",
                                                                      "head",
                                                                      "head_norm",
                                                                      "mtp"};
  return kNames[index_of(component)];
}

Bytes WeightBytes::total() const {
  return std::accumulate(by_component.begin(), by_component.end(), Bytes{});
}

Bytes WeightBytes::backbone() const { return total() - of(WeightComponent::kMtp); }

Bytes expert_bytes(const ModelConfig& model, ExpertFormat format, bool scales_as_fp32) {
  const double parameters = 3.0 * model.expert_inter * model.hidden;
  const double scale_bytes = scales_as_fp32 ? kFp32Bytes : 1.0;
  return format == ExpertFormat::kMxfp4 ? Bytes(parameters * (0.5 + scale_bytes / 32.0))
                                        : Bytes(parameters * (0.5 + 1.0 / 16.0));
}

Bytes fp8_block_matrix_bytes(const ModelConfig& model, double n, double k) {
  return Bytes(n * k + std::ceil(n / model.fp8_block_n) * std::ceil(k / model.fp8_block_k));
}

WeightBytes checkpoint_bytes(const ModelConfig& model) { return bytes_of(model, WeightLayout{}); }

WeightBytes rank_bytes(const ModelConfig& model, const WeightLayout& layout) {
  return bytes_of(model, layout);
}

Bytes bytes_read_per_step(const ModelConfig& model, const WeightLayout& layout,
                          double distinct_experts) {
  const WeightBytes bytes = bytes_of(model, layout);
  const LayerShapes layer{model, 1.0, false};
  return bytes.backbone() - bytes.of(WeightComponent::kEmbedding) -
         model.num_hash_layers * layer.hash_table() -
         bytes.of(WeightComponent::kRoutedExperts) * (1.0 - distinct_experts / model.num_experts);
}

}  // namespace fulcrum
