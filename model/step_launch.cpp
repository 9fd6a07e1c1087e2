#include <algorithm>

#include "model/step_graph.h"

namespace fulcrum {
namespace {

/// Tokens and requests of one execution of `op`.
struct Tokens {
  double tokens;
  double per_request;
};

Tokens tokens_of(const StepOp& op, const StepState& state, double block) {
  switch (op.rows) {
    case Rows::kStep:
      break;
    case Rows::kPerRequest:
      return {state.requests, 1.0};
    case Rows::kBlock:
      return {state.requests * block, block};
  }
  return {state.tokens(), state.tokens_per_request};
}

/// Rows that reach a head: a draft samples one per request and position.
double head_rows(const StepOp& op, const StepState& state, const Tokens& tokens) {
  if (!op.draft) return state.logits_rows;
  return op.rows == Rows::kBlock ? tokens.tokens : state.requests;
}

}  // namespace

Launch launch_at(const StepGraph& graph, const StepOp& op, const StepState& state) {
  const ModelConfig& model = graph.model;
  const KernelTraits& traits = graph.settings.traits;
  const Tokens tokens = tokens_of(op, state, graph.settings.num_draft_tokens);
  const double logits = head_rows(op, state, tokens);
  // A graph-captured launch is sized for the configured context; prefill runs eager on live sizes.
  const double configured = graph.settings.max_context;
  const double live_context = state.context + (state.prefill ? 0.0 : 1.0);

  if (const auto* gemm = std::get_if<GemmLaunch>(&op.shape)) {
    GemmLaunch launch = *gemm;
    launch.m = tokens.tokens * op.rows_per_token;
    if (op.id == OpId::kLmHead) launch.m = logits;
    return launch;
  }
  if (const auto* moe = std::get_if<MoeLaunch>(&op.shape)) {
    MoeLaunch launch = *moe;
    launch.tokens = tokens.tokens;
    launch.tokens_per_request = tokens.per_request;
    return launch;
  }
  if (const auto* attention = std::get_if<AttentionLaunch>(&op.shape)) {
    AttentionLaunch launch = *attention;
    launch.tokens = tokens.tokens;
    launch.tokens_per_request = tokens.per_request;
    launch.window_rows = std::min<double>(model.window, live_context);
    launch.padded_window_rows = model.window;
    if (op.id == OpId::kAttentionCsa) {
      launch.selected_rows = std::min<double>(model.index_top_k, live_context / model.csa_ratio);
      launch.padded_selected_rows =
          traits.attention_rows == Width::kConfigured ? model.index_top_k : launch.selected_rows;
    } else if (op.id == OpId::kAttentionHca) {
      launch.selected_rows = live_context / model.hca_ratio;
      const bool configured_width = traits.attention_rows == Width::kConfigured && !state.prefill;
      launch.padded_selected_rows =
          configured_width ? configured / model.hca_ratio : launch.selected_rows;
    }
    return launch;
  }
  if (const auto* scan = std::get_if<ContextScanLaunch>(&op.shape)) {
    ContextScanLaunch launch = *scan;
    launch.tokens = tokens.tokens;
    launch.tokens_per_request = tokens.per_request;
    launch.keys = live_context / model.csa_ratio;
    const bool configured_width = traits.indexer_keys == Width::kConfigured && !state.prefill;
    launch.padded_keys = configured_width ? configured / model.csa_ratio : launch.keys;
    return launch;
  }
  if (const auto* mhc = std::get_if<MhcLaunch>(&op.shape)) {
    MhcLaunch launch = *mhc;
    launch.tokens = tokens.tokens;
    return launch;
  }
  if (const auto* elementwise = std::get_if<ElementwiseLaunch>(&op.shape)) {
    ElementwiseLaunch launch = *elementwise;
    launch.tokens = tokens.tokens;
    if (op.id == OpId::kIndexerTopK) {
      const bool configured_width = traits.indexer_keys == Width::kConfigured && !state.prefill;
      launch.bytes_per_token *= (configured_width ? configured : live_context) / model.csa_ratio;
    }
    if (op.id == OpId::kSampling || op.id == OpId::kHcHead) {
      launch.tokens = logits;
    }
    return launch;
  }
  CollectiveLaunch launch = std::get<CollectiveLaunch>(op.shape);
  launch.bytes *= op.id == OpId::kAllGather ? logits : tokens.tokens;
  return launch;
}

}  // namespace fulcrum
