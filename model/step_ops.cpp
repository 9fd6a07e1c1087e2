#include <array>

#include "model/step_graph.h"

namespace fulcrum {
namespace {

struct OpNames {
  std::string_view name;
  std::string_view slot;
};
constexpr std::array<OpNames, kNumOpIds> kOpNames{{
    {"embedding", "elementwise"},
    {"mhc_pre", "mhc_pre"},
    {"mhc_post", "mhc_post"},
    {"act_quant", "elementwise"},
    {"wqkv_a", "fp8_gemm"},
    {"wq_b", "fp8_gemm"},
    {"q_norm_rope_kv_insert", "elementwise"},
    {"indexer_wq_b", "fp8_gemm"},
    {"indexer_weights_proj", "bf16_gemm"},
    {"indexer_quant", "elementwise"},
    {"indexer_compressor", "bf16_gemm"},
    {"indexer_logits", "indexer_logits"},
    {"indexer_top_k", "elementwise"},
    {"compressor_csa", "bf16_gemm"},
    {"compressor_hca", "bf16_gemm"},
    {"compressor_state", "elementwise"},
    {"compressor_emit", "elementwise"},
    {"attention_swa", "attention"},
    {"attention_csa", "attention"},
    {"attention_hca", "attention"},
    {"inverse_rope", "elementwise"},
    {"wo_a", "wo_a"},
    {"wo_b", "fp8_gemm"},
    {"gate", "bf16_gemm"},
    {"router_top_k", "elementwise"},
    {"routed_experts", "routed_experts"},
    {"shared_gate_up", "fp8_gemm"},
    {"shared_swiglu", "elementwise"},
    {"shared_down", "fp8_gemm"},
    {"moe_combine", "elementwise"},
    {"framework_copies", "framework_copies"},
    {"all_reduce", "all_reduce"},
    {"hc_head", "elementwise"},
    {"lm_head", "bf16_gemm"},
    {"all_gather", "all_gather"},
    {"sampling", "elementwise"},
    {"mtp_e_proj", "fp8_gemm"},
    {"mtp_h_proj", "fp8_gemm"},
    {"dspark_main_proj", "fp8_gemm"},
    {"dspark_context_kv", "fp8_gemm"},
    {"markov_embedding", "elementwise"},
    {"markov_head", "bf16_gemm"},
}};

}  // namespace

std::string_view name_of(OpFamily family) {
  constexpr std::string_view kNames[] = {"attention",   "gemm_fp8", "gemm_bf16",  "moe",
                                         "mhc",         "indexer",  "collective", "head",
                                         "elementwise", "draft",    "gap"};
  return kNames[static_cast<int>(family)];
}

std::string_view name_of(OpId id) { return kOpNames[static_cast<std::size_t>(id)].name; }
std::string_view slot_of(OpId id) { return kOpNames[static_cast<std::size_t>(id)].slot; }

}  // namespace fulcrum
