#include "replay/bind.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace fulcrum::replay {
namespace {

std::int64_t whole(double value) { return static_cast<std::int64_t>(std::ceil(value - 1e-9)); }

std::string shape_of(std::initializer_list<std::pair<const char*, double>> dims) {
  std::string text;
  for (const auto& [name, value] : dims) {
    text += (text.empty() ? "" : ",") + std::string(name) + "=" + std::to_string(whole(value));
  }
  return text;
}

Binding runs(const char* kernel, std::string shape, double launches = 1) {
  return {.kernel = kernel, .shape = std::move(shape), .launches = launches, .absence = ""};
}
Binding absent(const char* reason) {
  return {.kernel = "", .shape = "", .launches = 0, .absence = reason};
}

Binding bind_gemm(const GemmLaunch& gemm, const BindOptions& options) {
  const std::string shape = shape_of({{"m", gemm.m}, {"n", gemm.n}, {"k", gemm.k}});
  const bool fp8 = gemm.weight_bits < 16;
  if (!fp8) return runs("gemm_bf16_cublaslt", shape, gemm.groups);
  return runs(
      options.fp8_gemm == BindOptions::Gemm::kOwn ? "gemm_fp8_block" : "gemm_fp8_block_cublaslt",
      shape, gemm.groups);
}

Binding bind_attention(const AttentionLaunch& a, const BindOptions& options) {
  // An indexer's choice is drawn from a request's compressed rows; the harness wants at least as
  // many as it attends.
  const double width = std::max(a.padded_selected_rows, std::max(a.selected_rows, 1.0));
  const std::string shape = shape_of({{"m", a.tokens},
                                      {"heads", std::max(a.heads, 16.0)},
                                      {"rows", a.selected_rows},
                                      {"width", width},
                                      {"context_rows", std::max(a.selected_rows, 1.0)}});
  return runs(options.attention == BindOptions::Attention::kSplitK ? "sparse_mla_split_k"
                                                                   : "sparse_mla_row_loop",
              shape);
}

Binding bind_moe(const MoeLaunch& m, const BindOptions& options) {
  if (m.num_experts != m.local_experts) {
    return absent("expert parallel: the replay's routing covers one rank's experts only");
  }
  const bool nvfp4 = m.weight_bits == 4.5;
  return runs(options.moe == BindOptions::Moe::kGrouped ? "moe_grouped" : "moe_per_slot",
              shape_of({{"t", m.tokens},
                        {"hidden", m.hidden},
                        {"width", m.inter},
                        {"experts", m.local_experts},
                        {"topk", m.top_k},
                        {"nvfp4", nvfp4 ? 1.0 : 0.0}}));
}

// Tokens one execution of the op sees.
double tokens_of(const StepOp& op, const StepState& state, double block) {
  switch (op.rows) {
    case Rows::kStep:
      return state.tokens();
    case Rows::kPerRequest:
      return state.requests;
    case Rows::kBlock:
      return state.requests * block;
  }
  return state.tokens();
}

// A draft samples one token per request, or one per position of its block.
double tokens_sampled(const StepOp& op, const StepState& state, double tokens) {
  return op.rows == Rows::kBlock ? tokens : state.requests;
}

}  // namespace

Binding bind_op(const StepGraph& graph, const StepOp& op, const StepState& state,
                const BindOptions& options) {
  const Launch launch = launch_at(graph, op, state);
  const ModelConfig& model = graph.model;
  const double tokens = tokens_of(op, state, graph.settings.num_draft_tokens);
  const double local_heads = static_cast<double>(model.num_heads) / graph.settings.tensor_parallel;
  const std::string per_token = shape_of({{"m", tokens}});
  switch (op.id) {
    case OpId::kWqkvA:
    case OpId::kWqB:
    case OpId::kIndexerWqB:
    case OpId::kWoA:
    case OpId::kWoB:
    case OpId::kSharedGateUp:
    case OpId::kSharedDown:
    case OpId::kMtpEProj:
    case OpId::kMtpHProj:
    case OpId::kDsparkMainProj:
    case OpId::kDsparkContextKv:
    case OpId::kMarkovHead:
    case OpId::kIndexerWeightsProj:
    case OpId::kIndexerCompressor:
    case OpId::kCompressorCsa:
    case OpId::kCompressorHca:
    case OpId::kGate:
      return bind_gemm(std::get<GemmLaunch>(launch), options);
    case OpId::kLmHead: {
      const GemmLaunch& head = std::get<GemmLaunch>(launch);
      return runs("head_gemv", shape_of({{"m", head.m}, {"n", head.n}, {"k", head.k}}));
    }
    case OpId::kAttentionSwa:
    case OpId::kAttentionCsa:
    case OpId::kAttentionHca:
      return bind_attention(std::get<AttentionLaunch>(launch), options);
    case OpId::kRoutedExperts:
      return bind_moe(std::get<MoeLaunch>(launch), options);
    case OpId::kIndexerLogits: {
      const ContextScanLaunch& scan = std::get<ContextScanLaunch>(launch);
      return runs("index_logits",
                  shape_of({{"m", scan.tokens}, {"keys", std::max(scan.padded_keys, 1.0)}}));
    }
    case OpId::kIndexerTopK:
      return runs("top_k", shape_of({{"m", tokens},
                                     {"keys", std::max(state.context / 4.0, 1.0)},
                                     {"top_k", static_cast<double>(model.index_top_k)}}));
    case OpId::kIndexerQuant:
      return runs("index_query", per_token);
    case OpId::kMhcPre:
      return runs("mhc_pre",
                  shape_of({{"m", tokens},
                            {"hidden", static_cast<double>(model.hidden)},
                            {"iterations", static_cast<double>(model.sinkhorn_iterations)}}));
    case OpId::kMhcPost:
      return runs("mhc_post",
                  shape_of({{"m", tokens}, {"hidden", static_cast<double>(model.hidden)}}));
    case OpId::kActQuant:
      return runs("group_quantize",
                  shape_of({{"m", tokens}, {"dim", static_cast<double>(model.hidden)}}));
    case OpId::kQNormRopeKvInsert:
      return runs("query_norm_rope", shape_of({{"m", tokens}, {"heads", local_heads}}));
    case OpId::kInverseRope:
      return runs("inverse_rope", shape_of({{"m", tokens}, {"heads", local_heads}}));
    case OpId::kCompressorState:
      return runs("compressor", shape_of({{"requests", state.requests},
                                          {"tokens", state.tokens_per_request},
                                          {"ratio", 4.0},
                                          {"emit", 2.0}}));
    case OpId::kCompressorEmit:
      return absent(
          "the compressor kernel stores the pooled row in the launch that updates the state");
    case OpId::kRouterTopK:
      return runs("router", shape_of({{"m", tokens},
                                      {"experts", static_cast<double>(model.num_experts)},
                                      {"top_k", static_cast<double>(model.top_k)}}));
    case OpId::kSharedSwiglu:
      return runs(
          "swiglu",
          shape_of({{"m", tokens},
                    {"dim", static_cast<double>(model.expert_inter) * model.num_shared_experts /
                                graph.settings.tensor_parallel}}));
    case OpId::kMoeCombine:
      return absent("the last launch of the moe kernels sums a token's experts");
    case OpId::kSampling:
      return runs("sampling",
                  shape_of({{"m", op.draft ? tokens_sampled(op, state, tokens) : state.logits_rows},
                            {"vocab", static_cast<double>(model.vocab)}}));
    case OpId::kAllReduce:
    case OpId::kAllGather:
      return absent("collectives need several GPUs: `replay collectives`");
    case OpId::kHcHead:
      return absent(
          "the last mHC site has no kernel of its own here; its cost is that of mhc_post");
    case OpId::kEmbedding:
    case OpId::kMarkovEmbedding:
      return absent("a gather of one row per token: below the launch floor");
    case OpId::kFrameworkCopies:
      return absent("the framework's own casts and fills, which this repository does not launch");
  }
  return absent("unknown op");
}

}  // namespace fulcrum::replay
