#include "replay/step/rank.h"

#include <algorithm>

#include "kernels/attention/sparse_mla_launch.h"
#include "kernels/head/sampling.h"
#include "kernels/mhc/mhc.h"
#include "replay/case_parts.h"
#include "replay/random_fill.h"
#include "replay/random_rows.h"

namespace fulcrum::replay {

using kernels::DeviceBuffer;

StepRank::StepRank(const StepGraph& graph, const CacheLimits& limits, std::int64_t l2_bytes,
                   std::uint64_t seed)
    : graph_(graph),
      weights_(graph, l2_bytes, seed),
      cache_(graph, limits, seed + 1'000'003),
      local_heads_(graph.model.num_heads / graph.settings.tensor_parallel),
      low_width_(graph.model.o_groups * graph.model.o_lora / graph.settings.tensor_parallel),
      shared_width_(graph.model.expert_inter * graph.model.num_shared_experts /
                    graph.settings.tensor_parallel),
      local_vocab_(graph.model.vocab / graph.settings.tensor_parallel) {
  int device = 0;
  int major = 0;
  FULCRUM_CUDA_CHECK(cudaGetDevice(&device));
  FULCRUM_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  is_sm90_ = major == 9;
  allocate(seed + 2'000'003);
}

void StepRank::allocate(std::uint64_t seed) {
  const ModelConfig& m = graph_.model;
  const int tokens = cache_.limits().max_tokens();
  const auto bf16 = [&](std::int64_t width) {
    return random_bf16(product({tokens, width}), ++seed);
  };
  const auto floats = [&](std::int64_t width, std::int64_t rows) {
    return random_floats(product({rows, width}), ++seed);
  };
  a_.residual = bf16(std::int64_t{m.hc_streams} * m.hidden);
  a_.input = bf16(m.hidden);
  a_.qkv = bf16(m.q_lora + m.head_dim);
  a_.q_low = bf16(m.q_lora);
  a_.query = bf16(std::int64_t{local_heads_} * m.head_dim);
  a_.attention = bf16(std::int64_t{local_heads_} * m.head_dim);
  a_.low = bf16(low_width_);
  a_.sublayer = bf16(m.hidden);
  a_.shared_gate_up = bf16(2 * shared_width_);
  a_.shared_act = bf16(shared_width_);
  a_.shared_out = bf16(m.hidden);
  a_.index_query = bf16(std::int64_t{m.index_heads} * m.index_dim);
  a_.e_proj = bf16(m.hidden);
  a_.post = floats(kernels::kMhcStreams, tokens);
  a_.comb = floats(kernels::kMhcStreams * kernels::kMhcStreams, tokens);
  a_.mhc_workspace = floats(kernels::mhc_pre_workspace_floats(tokens, m.hidden), 1);
  a_.index_weights = floats(m.index_heads, tokens);
  a_.index_weights_scaled = floats(m.index_heads, tokens);
  a_.projected = floats(4 * m.head_dim, tokens);
  a_.index_projected = floats(4 * m.index_dim, tokens);
  a_.gate_logits = floats(m.num_experts, tokens);
  a_.router_weights = floats(m.top_k, tokens);
  a_.expert_weights = random_floats(product({tokens, m.top_k}), ++seed, 0.1F, 0.5F);
  const int max_keys = (cache_.limits().max_context / m.csa_ratio + 63) / 64 * 64;
  a_.index_logits = floats(max_keys, tokens);
  a_.logits = floats(local_vocab_, tokens);
  a_.gathered = floats(m.vocab, tokens);
  a_.sink = floats(local_heads_, 1);
  a_.router_bias = random_floats(product({m.num_experts}), ++seed, -0.5F, 0.5F);
  a_.norm_weight = random_bf16(product({m.hidden}), ++seed, 0.5F, 1.5F);
  const std::int64_t widest = std::max<std::int64_t>(
      {std::int64_t{local_heads_} * m.head_dim, std::int64_t{m.hc_streams} * m.hidden});
  for (int branch = 0; branch < 3; ++branch) {
    a_.codes[branch] = DeviceBuffer<std::uint8_t>(product({tokens, widest}));
    fill_e4m3(a_.codes[branch].data(), length(a_.codes[branch]), ++seed, nullptr, 0x48);
    a_.code_scales[branch] = floats(widest / 128, tokens);
  }
  a_.index_codes = DeviceBuffer<std::uint8_t>(product({tokens, m.index_heads, m.index_dim}));
  fill_e4m3(a_.index_codes.data(), length(a_.index_codes), ++seed, nullptr, 0x48);
  a_.sampling_workspace = DeviceBuffer<std::uint8_t>(
      static_cast<std::size_t>(kernels::sampling_workspace_bytes(tokens, m.vocab)));
  a_.token_ids = DeviceBuffer<std::int32_t>(product({tokens}));
  fill_int(a_.token_ids.data(), tokens, 0, weights_.num_embedding_rows() - 1, ++seed, nullptr);
  a_.tokens = DeviceBuffer<std::int32_t>(product({tokens}));
  a_.tokens.zero();
  a_.router_experts = DeviceBuffer<std::int32_t>(product({tokens, m.top_k}));
  a_.top_k_rows = DeviceBuffer<std::int32_t>(product({tokens, m.index_top_k}));
  const kernels::MoeShape moe{.tokens = tokens,
                              .hidden = m.hidden,
                              .width = m.expert_inter / graph_.settings.tensor_parallel,
                              .experts = m.num_experts,
                              .top_k = m.top_k};
  a_.moe_workspace = DeviceBuffer<std::uint8_t>(kernels::moe_workspace_bytes(moe));
  // Uniform routing without replacement, independent between tokens and layers.
  std::vector<std::int32_t> ids;
  for (int i = 0; i < (m.num_layers + 1) * tokens; ++i) {
    const auto chosen =
        distinct_values(m.top_k, m.num_experts, ++seed + 0x5bd1e995ULL * static_cast<unsigned>(i));
    ids.insert(ids.end(), chosen.begin(), chosen.end());
  }
  a_.expert_ids = DeviceBuffer<std::int32_t>(ids);
}

void StepRank::configure(const StepCell& cell) {
  cache_.configure(graph_, cell);
  cell_ = cell;
  std::int64_t floats = 0;
  for (int later = 0; later < 2; ++later) {
    for (int kind = 0; kind < kNumLayerKinds; ++kind) {
      const kernels::SparseMlaShape shape{
          .num_tokens = later != 0 ? cell.requests : cell.tokens(),
          .num_heads = local_heads_,
          .window_width = graph_.model.window,
          .compressed_width = cache_.row_slots(static_cast<LayerKind>(kind))};
      kernels::SparseMlaPlan& plan = plans_[later][kind];
      FULCRUM_CUDA_CHECK(kernels::plan_sparse_mla_for_device(shape, &plan));
      floats = std::max(floats, kernels::sparse_mla_workspace_floats(shape, plan.num_splits));
    }
  }
  if (static_cast<std::int64_t>(a_.attention_workspace.size()) < floats) {
    a_.attention_workspace = DeviceBuffer<float>(static_cast<std::size_t>(floats));
  }
}

int StepRank::num_rotations(OpId id, int executions) const {
  const int sets = weights_.num_sets(id);
  const int of_weights = (sets + executions - 1) / executions;
  const int of_caches = std::max(1, cache_.limits().max_requests / cell_.requests);
  return sets > 1 ? of_weights : of_caches;
}

std::vector<std::int32_t> StepRank::sampled() const {
  return download_prefix(a_.tokens, product({cell_.tokens()}));
}
std::vector<std::uint16_t> StepRank::residual() const {
  return download_prefix(a_.residual,
                         product({cell_.tokens(), graph_.model.hc_streams, graph_.model.hidden}));
}
std::vector<float> StepRank::logits() const {
  return download_prefix(a_.logits, product({cell_.tokens(), local_vocab_}));
}

}  // namespace fulcrum::replay
