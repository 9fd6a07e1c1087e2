// The ordered operations of one decode step on one rank, with exact counts and shapes.
// Source of order, shapes and counts: model_facts section 2 (DeepSeek's reference model, SGLang and
// vLLM); derivations F1-F5 in model/README.md.
#pragma once

#include <array>
#include <string_view>
#include <variant>
#include <vector>

#include "model/kv_pools.h"
#include "model/laws/launches.h"
#include "model/model_config.h"

namespace fulcrum {

enum class OpFamily {
  kAttention,
  kGemmFp8,
  kGemmBf16,
  kMoe,
  kMhc,
  kIndexer,
  kCollective,
  kHead,
  kElementwise,
  kDraft,
  kGap,
};
std::string_view name_of(OpFamily family);

enum class OpId {
  kEmbedding,
  kMhcPre,
  kMhcPost,
  kActQuant,
  kWqkvA,
  kWqB,
  kQNormRopeKvInsert,
  kIndexerWqB,
  kIndexerWeightsProj,
  kIndexerQuant,
  kIndexerCompressor,
  kIndexerLogits,
  kIndexerTopK,
  kCompressorCsa,
  kCompressorHca,
  kCompressorState,
  kCompressorEmit,
  kAttentionSwa,
  kAttentionCsa,
  kAttentionHca,
  kInverseRope,
  kWoA,
  kWoB,
  kGate,
  kRouterTopK,
  kRoutedExperts,
  kSharedGateUp,
  kSharedSwiglu,
  kSharedDown,
  kMoeCombine,
  kFrameworkCopies,
  kAllReduce,
  kHcHead,
  kLmHead,
  kAllGather,
  kSampling,
  kMtpEProj,
  kMtpHProj,
  kDsparkMainProj,
  kDsparkContextKv,
  kMarkovEmbedding,
  kMarkovHead,
};
inline constexpr int kNumOpIds = 42;
/// The op's name in kernel sets and results, e.g. "wqkv_a".
std::string_view name_of(OpId id);
/// The binding a kernel set may give for many ops at once, e.g. "fp8_gemm" for the 236 block GEMMs.
std::string_view slot_of(OpId id);

/// Ops of one segment on different branches may run side by side on several streams.
enum class Segment { kSerial, kAttentionInput, kFeedForward };

/// What a kernel set's builds do to shapes.
enum class Width { kLive, kConfigured };
struct KernelTraits {
  int heads_padded_to = 0;              ///< local heads are padded up to this; 0: not padded
  Width attention_rows = Width::kLive;  ///< compressed rows walked: live, or for the max context
  Width indexer_keys = Width::kLive;    ///< keys scanned: live, or for the max context
  bool wo_a_bf16 = false;
  bool mxfp4_scales_as_fp32 = false;
  double index_row_bytes = 132.0;
  HcaStatePlacement hca_state = HcaStatePlacement::kPerRequestSlot;
  double side_stream_max_tokens = 0.0;  ///< branches overlap up to this many tokens under graphs
};

/// What is fixed when a graph is built.
struct GraphSettings {
  int tensor_parallel = 1;
  int expert_parallel = 1;
  int max_context = 0;
  Routing routing = Routing::kUniform;
  double power_law_alpha = 0.0;
  double neighbour_correlation = 0.0;
  DraftMethod draft_method = DraftMethod::kMtp;
  int num_draft_tokens = 0;  ///< MTP passes or DSpark block per step; 0: no speculation
  KernelTraits traits;
};

/// What changes from step to step.
struct StepState {
  double requests = 1.0;
  double tokens_per_request = 1.0;  ///< 1 in decode, 1 + K in verification, the chunk in prefill
  double context = 0.0;             ///< mean tokens already in the KV cache
  double logits_rows = 1.0;         ///< rows that reach the head, all requests together
  bool prefill = false;             ///< eager, widths of the live context
  double tokens() const { return requests * tokens_per_request; }
};

using Launch = std::variant<GemmLaunch, MoeLaunch, AttentionLaunch, ContextScanLaunch, MhcLaunch,
                            ElementwiseLaunch, CollectiveLaunch>;

/// Tokens one execution of an op sees.
enum class Rows {
  kStep,        ///< every token of the step
  kPerRequest,  ///< one per request: MTP passes after the first, positions of a Markov chain
  kBlock,       ///< the block a DSpark pass drafts, per request
};

struct StepOp {
  OpId id = OpId::kEmbedding;
  OpFamily family = OpFamily::kElementwise;
  bool draft = false;
  Rows rows = Rows::kStep;
  Segment segment = Segment::kSerial;
  int branch = 0;
  double count = 0.0;  ///< executions per forward pass of this rank
  /// Executions in one layer of each kind; zero for ops outside layers.
  std::array<double, kNumLayerKinds> per_layer{};
  double rows_per_token = 1.0;  ///< GEMM rows per token (h_proj sees all streams)
  Launch shape;                 ///< token-independent part; at() fills the rest
};

struct StepGraph {
  ModelConfig model;
  GraphSettings settings;
  std::vector<StepOp> ops;
};

/// Builds the graph. The TP degree must divide the model (tensor_parallel_problem).
StepGraph build_step_graph(const ModelConfig& model, const GraphSettings& settings);

/// The launch of `op` in `state`.
Launch launch_at(const StepGraph& graph, const StepOp& op, const StepState& state);

}  // namespace fulcrum
