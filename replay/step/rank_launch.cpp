// The launches of every op: one place per op, shapes from the step graph.
#include <cmath>
#include <stdexcept>

#include "kernels/attention/sparse_mla_launch.h"
#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/gemm/fp8_block_gemm.h"
#include "kernels/head/head_launch.h"
#include "kernels/indexer/indexer_launch.h"
#include "kernels/mhc/mhc_launch.h"
#include "kernels/moe/moe.h"
#include "kernels/router/router_launch.h"
#include "replay/case_parts.h"
#include "replay/step/rank.h"
#include "replay/step/step_kernels.h"

namespace fulcrum::replay {

using kernels::KvPool;

const GemmLaunch& StepRank::gemm_of(const ScheduledOp& op) const {
  // Not graph_.ops[op.op]: a schedule with another number of drafts counts its ops differently.
  for (const StepOp& candidate : graph_.ops) {
    if (candidate.id == op.id) return std::get<GemmLaunch>(candidate.shape);
  }
  throw std::logic_error("StepRank: no " + std::string(name_of(op.id)) + " in the graph");
}

bool StepRank::launch(const ScheduledOp& op, cudaStream_t stream, int rotation) {
  if (!absence_of(op.id, has_collectives()).empty()) return false;
  const int requests = cache_.limits().max_requests;
  const Call call{
      .op = op,
      .tokens = tokens_of(op, cell_),
      .set = op.ordinal + rotation * 101,  // 101: prime, so that copies take turns
      .first_request = rotation * cell_.requests % (requests / cell_.requests * cell_.requests),
      .tokens_per_request = op.pass > 1 ? 1 : 1 + cell_.drafts,
      .cache = op.layer >= 0 ? &cache_.layer(op.layer) : nullptr,
      .stream = stream};
  switch (op.id) {
    case OpId::kQNormRopeKvInsert:
    case OpId::kAttentionSwa:
    case OpId::kAttentionCsa:
    case OpId::kAttentionHca:
    case OpId::kInverseRope:
      launch_attention_op(call);
      return true;
    case OpId::kIndexerWeightsProj:
    case OpId::kIndexerQuant:
    case OpId::kIndexerCompressor:
    case OpId::kCompressorCsa:
    case OpId::kCompressorHca:
    case OpId::kCompressorState:
    case OpId::kIndexerLogits:
    case OpId::kIndexerTopK:
      launch_indexer_op(call);
      return true;
    case OpId::kActQuant:
    case OpId::kWqkvA:
    case OpId::kWqB:
    case OpId::kIndexerWqB:
    case OpId::kWoA:
    case OpId::kWoB:
    case OpId::kSharedGateUp:
    case OpId::kSharedDown:
    case OpId::kMtpEProj:
    case OpId::kMtpHProj:
      launch_projection(call);
      return true;
    case OpId::kMhcPre:
    case OpId::kMhcPost:
    case OpId::kGate:
    case OpId::kRouterTopK:
    case OpId::kRoutedExperts:
    case OpId::kSharedSwiglu:
      launch_feed_forward_op(call);
      return true;
    default:
      launch_outside_op(call);
      return true;
  }
}

void StepRank::quantize(const Call& call, const std::uint16_t* in, int rows, int dim, int branch) {
  FULCRUM_CUDA_CHECK(kernels::group_quantize({.num_rows = rows,
                                              .dim = dim,
                                              .in = in,
                                              .codes = a_.codes[branch].data(),
                                              .scales = a_.code_scales[branch].data()},
                                             call.stream));
}

void StepRank::fp8_gemm(const Call& call, int rows, int branch, std::uint16_t* out, int group) {
  const GemmLaunch& shape = gemm_of(call.op);
  const auto n = static_cast<int>(shape.n);
  const auto k = static_cast<int>(shape.k);
  const Fp8Matrix& weight = weights_.fp8(call.op.id, call.set);
  const auto block = static_cast<std::size_t>(group);
  const std::size_t rows_size = static_cast<std::size_t>(rows);
  const kernels::Fp8BlockGemmArgs args{
      .x = a_.codes[branch].data() + block * rows_size * static_cast<std::size_t>(k),
      .x_scale =
          a_.code_scales[branch].data() + block * rows_size * static_cast<std::size_t>(k / 128),
      .weight = weight.codes.data() + block * product({n, k}),
      .weight_scale = weight.scales.data() + block * product({(n + 127) / 128, k / 128}),
      .weight_scale_format = kernels::BlockScaleFormat::kE8m0,
      .y = out + block * rows_size * static_cast<std::size_t>(n),
      .m = rows,
      .n = n,
      .k = k};
  FULCRUM_CUDA_CHECK(kernels::launch_fp8_block_gemm(args, call.stream));
}

void StepRank::bf16_gemm(const Call& call, int rows, const std::uint16_t* in, float* out) {
  const GemmLaunch& shape = gemm_of(call.op);
  FULCRUM_CUDA_CHECK(kernels::head_gemv({.num_tokens = rows,
                                         .num_rows = static_cast<int>(shape.n),
                                         .depth = static_cast<int>(shape.k),
                                         .weight = weights_.bf16(call.op.id, call.set).data(),
                                         .x = in,
                                         .out = out},
                                        call.stream));
}

void StepRank::launch_projection(const Call& call) {
  const ModelConfig& m = graph_.model;
  const int branch = call.op.branch;
  switch (call.op.id) {
    case OpId::kActQuant:
      switch (call.op.feeds) {
        case OpId::kWqB:
        case OpId::kIndexerWqB:
          return quantize(call, a_.q_low.data(), call.tokens, m.q_lora, branch);
        case OpId::kWoB:
          return quantize(call, a_.low.data(), call.tokens, low_width_, branch);
        case OpId::kSharedDown:
          return quantize(call, a_.shared_act.data(), call.tokens, shared_width_, branch);
        default:
          return quantize(call, a_.input.data(), call.tokens, m.hidden, branch);
      }
    case OpId::kWqkvA:
      return fp8_gemm(call, call.tokens, branch, a_.qkv.data());
    case OpId::kWqB:
      return fp8_gemm(call, call.tokens, branch, a_.query.data());
    case OpId::kIndexerWqB:
      return fp8_gemm(call, call.tokens, branch, a_.index_query.data());
    case OpId::kWoA: {
      // The attention's output has no quantiser of its own in the graph: it is part of this op.
      quantize(call, a_.attention.data(), call.tokens, local_heads_ * m.head_dim, branch);
      const auto groups = static_cast<int>(gemm_of(call.op).groups);
      for (int group = 0; group < groups; ++group) {
        fp8_gemm(call, call.tokens, branch, a_.low.data(), group);
      }
      return;
    }
    case OpId::kWoB:
      return fp8_gemm(call, call.tokens, branch, a_.sublayer.data());
    case OpId::kSharedGateUp:
      return fp8_gemm(call, call.tokens, branch, a_.shared_gate_up.data());
    case OpId::kSharedDown:
      return fp8_gemm(call, call.tokens, branch, a_.shared_out.data());
    case OpId::kMtpEProj:
      quantize(call, a_.input.data(), call.tokens, m.hidden, branch);
      return fp8_gemm(call, call.tokens, branch, a_.e_proj.data());
    default:  // kMtpHProj: every stream of every token
      quantize(call, a_.residual.data(), call.tokens * m.hc_streams, m.hidden, branch);
      return fp8_gemm(call, call.tokens * m.hc_streams, branch, a_.residual.data());
  }
}

void StepRank::launch_attention_op(const Call& call) {
  const ModelConfig& m = graph_.model;
  const bool later = call.op.pass > 1;
  const TokenTables& tables = cache_.tables(later);
  const std::int64_t first = std::int64_t{call.first_request} * call.tokens_per_request;
  const kernels::RopeTable rope{cache_.cos_sin(), tables.positions.data() + first};
  if (call.op.id == OpId::kQNormRopeKvInsert) {
    if (call.op.part == 0) {
      FULCRUM_CUDA_CHECK(kernels::rms_norm({.num_rows = call.tokens,
                                            .dim = m.q_lora,
                                            .in = a_.qkv.data(),
                                            .weight = a_.norm_weight.data(),
                                            .out = a_.q_low.data()},
                                           call.stream));
      return;
    }
    FULCRUM_CUDA_CHECK(kernels::query_norm_rope({.num_tokens = call.tokens,
                                                 .num_heads = local_heads_,
                                                 .in = a_.query.data(),
                                                 .rope = rope,
                                                 .out = a_.query.data()},
                                                call.stream));
    FULCRUM_CUDA_CHECK(kernels::kv_store({.num_tokens = call.tokens,
                                          .in = a_.qkv.data() + product({call.tokens, m.q_lora}),
                                          .weight = a_.norm_weight.data(),
                                          .rope = rope,
                                          .rows = tables.store_rows.data() + first,
                                          .pool = cache_.pool(call.cache->window)},
                                         call.stream));
    return;
  }
  if (call.op.id == OpId::kInverseRope) {
    FULCRUM_CUDA_CHECK(kernels::inverse_rope({.num_tokens = call.tokens,
                                              .num_heads = local_heads_,
                                              .rope = rope,
                                              .heads = a_.attention.data()},
                                             call.stream));
    return;
  }
  const LayerKind kind = call.op.kind;
  const int slots = cache_.row_slots(kind);
  const bool has_rows = kind != LayerKind::kSwa;
  const kernels::SparseMlaProblem problem{
      .shape = {.num_tokens = call.tokens,
                .num_heads = local_heads_,
                .window_width = m.window,
                .compressed_width = slots},
      .query = a_.query.data(),
      .window = cache_.pool(call.cache->window),
      .compressed = cache_.pool(has_rows ? call.cache->compressed : call.cache->window),
      .window_rows = tables.window_rows.data() + first * m.window,
      .window_counts = tables.window_counts.data() + first,
      .compressed_rows = cache_.rows(kind) + first * slots,
      .compressed_counts = cache_.row_counts(kind) + first,
      .sink = a_.sink.data(),
      .softmax_scale = 1.0F / std::sqrt(static_cast<float>(m.head_dim)),
      .out = a_.attention.data(),
      .workspace = a_.attention_workspace.data()};
  const auto& plan = plans_[later ? 1 : 0][static_cast<std::size_t>(kind)];
  FULCRUM_CUDA_CHECK(kernels::sparse_mla_split_k(problem, plan, call.stream));
}

void StepRank::launch_indexer_op(const Call& call) {
  const ModelConfig& m = graph_.model;
  const std::int64_t first = std::int64_t{call.first_request} * call.tokens_per_request;
  switch (call.op.id) {
    case OpId::kIndexerWeightsProj:
      return bf16_gemm(call, call.tokens, a_.input.data(), a_.index_weights.data());
    case OpId::kIndexerQuant:
      FULCRUM_CUDA_CHECK(kernels::index_query(
          {.num_tokens = call.tokens,
           .factor = 1.0F / std::sqrt(static_cast<float>(m.index_heads * m.index_dim)),
           .in = a_.index_query.data(),
           .in_weights = a_.index_weights.data(),
           .rope = {cache_.cos_sin(), cache_.tables(false).positions.data() + first},
           .query = a_.index_codes.data(),
           .out_weights = a_.index_weights_scaled.data()},
          call.stream));
      return;
    case OpId::kIndexerCompressor:
      return bf16_gemm(call, call.tokens, a_.input.data(), a_.index_projected.data());
    case OpId::kCompressorCsa:
    case OpId::kCompressorHca:
      return bf16_gemm(call, call.tokens, a_.input.data(), a_.projected.data());
    case OpId::kCompressorState: {
      const bool index = call.op.site == 1;
      const kernels::CompressorShape shape = cache_.compressor(call.op.kind, index, cell_);
      LayerCache& cache = *call.cache;
      FULCRUM_CUDA_CHECK(kernels::compress(
          {.shape = shape,
           .projected = index ? a_.index_projected.data() : a_.projected.data(),
           .ape = weights_.mhc(OpId::kMhcPre, 0).fn.data(),  // any floats of its size
           .first_positions = cache.first_positions.data() + call.first_request,
           .state_slots = cache_.slots() + call.first_request,
           .value_ring = index ? cache.index_values.data() : cache.values.data(),
           .score_ring = index ? cache.index_scores.data() : cache.scores.data(),
           .norm_weight = a_.norm_weight.data(),
           .cos_sin = cache_.cos_sin(),
           .rows = cache_.closed_rows(call.op.kind) + first,
           .pool = cache_.pool(cache.compressed),
           .index_pool = {.pages = cache.index_keys.data()}},
          call.stream));
      return;
    }
    case OpId::kIndexerLogits: {
      const kernels::IndexLogitsProblem problem{
          .num_tokens = call.tokens,
          .max_keys = cache_.key_slots(),
          .query = a_.index_codes.data(),
          .weights = a_.index_weights_scaled.data(),
          .pool = {.pages = call.cache->index_keys.data()},
          .page_table = cache_.page_table() + first * (cache_.key_slots() / 64),
          .key_counts = cache_.key_counts() + first,
          .logits = a_.index_logits.data()};
      FULCRUM_CUDA_CHECK(is_sm90_ ? kernels::index_logits_sm90(problem, call.stream)
                                  : kernels::index_logits(problem, call.stream));
      return;
    }
    default:  // kIndexerTopK
      FULCRUM_CUDA_CHECK(kernels::top_k({.num_tokens = call.tokens,
                                         .max_keys = cache_.key_slots(),
                                         .top_k = m.index_top_k,
                                         .logits = a_.index_logits.data(),
                                         .key_counts = cache_.key_counts() + first,
                                         .indices = a_.top_k_rows.data()},
                                        call.stream));
      return;
  }
}

void StepRank::launch_feed_forward_op(const Call& call) {
  const ModelConfig& m = graph_.model;
  switch (call.op.id) {
    case OpId::kMhcPre: {
      const MhcWeights& weights = weights_.mhc(OpId::kMhcPre, call.set);
      FULCRUM_CUDA_CHECK(kernels::mhc_pre({.num_tokens = call.tokens,
                                           .hidden = m.hidden,
                                           .num_iterations = m.sinkhorn_iterations,
                                           .residual = a_.residual.data(),
                                           .fn = weights.fn.data(),
                                           .scale = weights.scale.data(),
                                           .base = weights.base.data(),
                                           .norm_weight = a_.norm_weight.data(),
                                           .out = a_.input.data(),
                                           .post = a_.post.data(),
                                           .comb = a_.comb.data(),
                                           .workspace = a_.mhc_workspace.data()},
                                          call.stream));
      return;
    }
    case OpId::kMhcPost:
      FULCRUM_CUDA_CHECK(kernels::mhc_post({.num_tokens = call.tokens,
                                            .hidden = m.hidden,
                                            .residual = a_.residual.data(),
                                            .sublayer = a_.sublayer.data(),
                                            .post = a_.post.data(),
                                            .comb = a_.comb.data(),
                                            .out = a_.residual.data()},
                                           call.stream));
      return;
    case OpId::kGate:
      return bf16_gemm(call, call.tokens, a_.input.data(), a_.gate_logits.data());
    case OpId::kRouterTopK:
      FULCRUM_CUDA_CHECK(kernels::route({.num_tokens = call.tokens,
                                         .num_experts = m.num_experts,
                                         .top_k = m.top_k,
                                         .logits = a_.gate_logits.data(),
                                         .bias = a_.router_bias.data(),
                                         .experts = a_.router_experts.data(),
                                         .weights = a_.router_weights.data()},
                                        call.stream));
      return;
    case OpId::kSharedSwiglu:
      FULCRUM_CUDA_CHECK(kernels::swiglu({.num_rows = call.tokens,
                                          .width = shared_width_,
                                          .in = a_.shared_gate_up.data(),
                                          .out = a_.shared_act.data()},
                                         call.stream));
      return;
    default: {  // kRoutedExperts
      const ExpertWeights& experts = weights_.experts(call.set);
      const std::size_t ids = product({call.op.layer, cache_.limits().max_tokens(), m.top_k});
      const kernels::MoeArgs args{
          .shape = {.tokens = call.tokens,
                    .hidden = m.hidden,
                    .width = m.expert_inter / graph_.settings.tensor_parallel,
                    .experts = m.num_experts,
                    .top_k = m.top_k},
          .weights = {.format = kernels::Fp4Format::kMxfp4,
                      .gate_up = experts.gate_up.data(),
                      .gate_up_scale = experts.gate_up_scale.data(),
                      .down = experts.down.data(),
                      .down_scale = experts.down_scale.data()},
          .x = a_.input.data(),
          .expert_ids = a_.expert_ids.data() + ids,
          .expert_weights = a_.expert_weights.data(),
          .out = a_.sublayer.data(),
          .workspace = a_.moe_workspace.data()};
      FULCRUM_CUDA_CHECK(kernels::launch_moe_grouped(args, call.stream));
      return;
    }
  }
}

void StepRank::launch_outside_op(const Call& call) {
  const ModelConfig& m = graph_.model;
  const int rows = call.op.pass > 0 ? cell_.requests : cell_.tokens();
  switch (call.op.id) {
    case OpId::kEmbedding:
      FULCRUM_CUDA_CHECK(gather_embeddings(weights_.embedding(), a_.token_ids.data(), call.tokens,
                                           m.hidden, m.hc_streams, a_.residual.data(),
                                           call.stream));
      return;
    case OpId::kHcHead: {
      // The last mix of the streams and the final norm are the first half of a site.
      const MhcWeights& weights = weights_.mhc(OpId::kHcHead, call.set);
      FULCRUM_CUDA_CHECK(kernels::mhc_pre({.num_tokens = rows,
                                           .hidden = m.hidden,
                                           .num_iterations = m.sinkhorn_iterations,
                                           .residual = a_.residual.data(),
                                           .fn = weights.fn.data(),
                                           .scale = weights.scale.data(),
                                           .base = weights.base.data(),
                                           .norm_weight = a_.norm_weight.data(),
                                           .out = a_.input.data(),
                                           .post = a_.post.data(),
                                           .comb = a_.comb.data(),
                                           .workspace = a_.mhc_workspace.data()},
                                          call.stream));
      return;
    }
    case OpId::kLmHead:
      return bf16_gemm(call, rows, a_.input.data(), a_.logits.data());
    case OpId::kSampling:
      FULCRUM_CUDA_CHECK(kernels::sample({.num_tokens = rows,
                                          .vocab = m.vocab,
                                          .logits = a_.gathered.data(),
                                          .tokens = a_.tokens.data(),
                                          .workspace = a_.sampling_workspace.data()},
                                         call.stream));
      return;
    case OpId::kAllGather:
      return all_gather_(a_.logits.data(), a_.gathered.data(), product({rows, local_vocab_}),
                         call.stream);
    case OpId::kAllReduce:
      return all_reduce_(call.op.layer < 0 ? a_.residual.data() : a_.sublayer.data(),
                         product({call.tokens, m.hidden}), call.stream);
    default:
      throw std::logic_error("StepRank: no launch for " + std::string(name_of(call.op.id)));
  }
}

}  // namespace fulcrum::replay
