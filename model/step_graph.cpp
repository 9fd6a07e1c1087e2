#include "model/step_graph.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fulcrum {
namespace {

constexpr double kBf16 = 2.0;
constexpr double kFp32 = 4.0;
constexpr double kFp8BlockBits = 8.0 + 8.0 / (128.0 * 128.0);
constexpr double kIndexBytes = 4.0;

/// Counts of one op per layer kind {swa, csa, hca}.
constexpr std::array<double, kNumLayerKinds> kEveryLayer{1, 1, 1};
constexpr std::array<double, kNumLayerKinds> kSwaOnly{1, 0, 0};
constexpr std::array<double, kNumLayerKinds> kCsaOnly{0, 1, 0};
constexpr std::array<double, kNumLayerKinds> kHcaOnly{0, 0, 1};

class GraphBuilder {
 public:
  GraphBuilder(const ModelConfig& model, const GraphSettings& settings)
      : model_(model), settings_(settings), tp_(settings.tensor_parallel) {
    graph_.model = model;
    graph_.settings = settings;
  }

  StepGraph build() {
    once(OpId::kEmbedding, OpFamily::kElementwise, elementwise(model_.hidden * kBf16 * 2.0),
         layers_);
    attention_half(layers_);
    feed_forward_half(layers_);
    head(layers_);
    if (settings_.draft_method == DraftMethod::kDspark) {
      if (settings_.num_draft_tokens > 0) dspark_block();
    } else {
      for (int pass = 0; pass < settings_.num_draft_tokens; ++pass) mtp_pass(pass);
    }
    return std::move(graph_);
  }

 private:
  /// How many layers of each kind a group of ops covers, and how its ops are marked.
  struct Scope {
    std::array<double, kNumLayerKinds> layers{};
    bool draft = false;
    Rows rows = Rows::kStep;
  };

  void add(const Scope& scope, OpId id, OpFamily family, std::array<double, kNumLayerKinds> per,
           Launch shape, Segment segment = Segment::kSerial, int branch = 0) {
    double count = 0.0;
    for (int k = 0; k < kNumLayerKinds; ++k) {
      count += per[static_cast<std::size_t>(k)] * scope.layers[static_cast<std::size_t>(k)];
    }
    if (count == 0.0) return;
    StepOp op;
    op.id = id;
    op.family = scope.draft ? OpFamily::kDraft : family;
    op.draft = scope.draft;
    op.rows = scope.rows;
    op.segment = segment;
    op.branch = branch;
    op.count = count;
    op.per_layer = per;
    op.shape = shape;
    graph_.ops.push_back(op);
  }

  void once(OpId id, OpFamily family, Launch shape, const Scope& scope, double count = 1.0,
            double rows_per_token = 1.0) {
    StepOp op;
    op.id = id;
    op.family = scope.draft ? OpFamily::kDraft : family;
    op.draft = scope.draft;
    op.rows = scope.rows;
    op.count = count;
    op.rows_per_token = rows_per_token;
    op.shape = shape;
    graph_.ops.push_back(op);
  }

  static ElementwiseLaunch elementwise(double bytes_per_token, double fixed_bytes = 0.0) {
    return {.tokens = 0.0, .bytes_per_token = bytes_per_token, .fixed_bytes = fixed_bytes};
  }
  static GemmLaunch fp8_gemm(double n, double k) {
    return {.n = n,
            .k = k,
            .compute = NumberFormat::kFp8,
            .weight_bits = kFp8BlockBits,
            .activation_bits = 8.0,
            .output_bits = 16.0};
  }
  static GemmLaunch bf16_gemm(double n, double k, double output_bits = 16.0) {
    return {.n = n, .k = k, .output_bits = output_bits};
  }
  CollectiveLaunch collective(CollectiveKind kind, double bytes_per_token) const {
    return {.kind = kind, .bytes = bytes_per_token, .ranks = tp_};
  }
  double local_heads() const { return model_.num_heads / tp_; }
  double launched_heads() const {
    const double pad = settings_.traits.heads_padded_to;
    return pad > 0.0 ? std::ceil(local_heads() / pad) * pad : local_heads();
  }

  AttentionLaunch attention() const {
    AttentionLaunch launch;
    launch.heads = launched_heads();
    launch.head_dim = model_.head_dim;
    return launch;
  }

  /// Mean bytes an activation quantisation moves per token over the block-GEMM inputs of a layer
  /// set: BF16 in, FP8 and one FP32 scale per 128 out.
  Launch act_quant(const std::array<double, kNumLayerKinds>& layers) const {
    const double inputs_all = model_.hidden * 2.0 + model_.q_lora +
                              static_cast<double>(model_.o_groups) * model_.o_lora / tp_ +
                              static_cast<double>(model_.expert_inter) / tp_;
    const double num_layers = layers[0] + layers[1] + layers[2];
    const double total_k = inputs_all * num_layers + model_.q_lora * layers[1];
    const double sites = 5.0 * num_layers + layers[1];
    return elementwise(total_k / sites * (kBf16 + 1.0 + kFp32 / 128.0));
  }

  void attention_half(const Scope& s) {
    const double hc_bytes = model_.hc_streams * model_.hidden * kBf16;
    const MhcLaunch mhc{.hidden = static_cast<double>(model_.hidden),
                        .streams = static_cast<double>(model_.hc_streams),
                        .sinkhorn_iterations = static_cast<double>(model_.sinkhorn_iterations)};
    add(s, OpId::kMhcPre, OpFamily::kMhc, {2, 2, 2}, mhc);
    add(s, OpId::kMhcPost, OpFamily::kMhc, {2, 2, 2},
        elementwise(2.0 * hc_bytes + model_.hidden * kBf16));
    add(s, OpId::kActQuant, OpFamily::kElementwise, {5, 6, 5}, act_quant(s.layers));
    add(s, OpId::kWqkvA, OpFamily::kGemmFp8, kEveryLayer,
        fp8_gemm(model_.q_lora + model_.head_dim, model_.hidden));

    constexpr Segment kIn = Segment::kAttentionInput;
    add(s, OpId::kWqB, OpFamily::kGemmFp8, kEveryLayer,
        fp8_gemm(local_heads() * model_.head_dim, model_.q_lora), kIn, 0);
    add(s, OpId::kQNormRopeKvInsert, OpFamily::kElementwise, kEveryLayer,
        elementwise(2.0 * local_heads() * model_.head_dim * kBf16 +
                    2.0 * (model_.q_lora + model_.head_dim) * kBf16),
        kIn, 0);
    const double index_width = static_cast<double>(model_.index_heads) * model_.index_dim;
    add(s, OpId::kIndexerWqB, OpFamily::kGemmFp8, kCsaOnly, fp8_gemm(index_width, model_.q_lora),
        kIn, 1);
    add(s, OpId::kIndexerWeightsProj, OpFamily::kGemmBf16, kCsaOnly,
        bf16_gemm(model_.index_heads, model_.hidden), kIn, 1);
    add(s, OpId::kIndexerQuant, OpFamily::kElementwise, kCsaOnly,
        elementwise(index_width * (kBf16 + 1.0)), kIn, 1);
    add(s, OpId::kIndexerCompressor, OpFamily::kGemmBf16, kCsaOnly,
        bf16_gemm(4.0 * model_.index_dim, model_.hidden, 32.0), kIn, 2);
    add(s, OpId::kCompressorCsa, OpFamily::kGemmBf16, kCsaOnly,
        bf16_gemm(4.0 * model_.head_dim, model_.hidden, 32.0), kIn, 2);
    add(s, OpId::kCompressorHca, OpFamily::kGemmBf16, kHcaOnly,
        bf16_gemm(2.0 * model_.head_dim, model_.hidden, 32.0), kIn, 2);
    const double state_row = 4.0 * model_.head_dim * kFp32;
    add(s, OpId::kCompressorState, OpFamily::kElementwise, {0, 2, 1}, elementwise(2.0 * state_row),
        kIn, 2);
    add(s, OpId::kCompressorEmit, OpFamily::kElementwise, {0, 2, 1}, elementwise(state_row), kIn,
        2);

    ContextScanLaunch scan;
    scan.heads = model_.index_heads;
    scan.dim = model_.index_dim;
    scan.key_bytes = settings_.traits.index_row_bytes;
    add(s, OpId::kIndexerLogits, OpFamily::kIndexer, kCsaOnly, scan);
    add(s, OpId::kIndexerTopK, OpFamily::kIndexer, kCsaOnly,
        elementwise(kFp32, model_.index_top_k * kIndexBytes));
    add(s, OpId::kAttentionSwa, OpFamily::kAttention, kSwaOnly, attention());
    add(s, OpId::kAttentionCsa, OpFamily::kAttention, kCsaOnly, attention());
    add(s, OpId::kAttentionHca, OpFamily::kAttention, kHcaOnly, attention());
    add(s, OpId::kInverseRope, OpFamily::kElementwise, kEveryLayer,
        elementwise(2.0 * local_heads() * model_.rope_dim * kBf16));

    const double group_k =
        static_cast<double>(model_.num_heads) * model_.head_dim / model_.o_groups;
    GemmLaunch wo_a = settings_.traits.wo_a_bf16 ? bf16_gemm(model_.o_lora, group_k)
                                                 : fp8_gemm(model_.o_lora, group_k);
    wo_a.groups = model_.o_groups / tp_;
    add(s, OpId::kWoA, settings_.traits.wo_a_bf16 ? OpFamily::kGemmBf16 : OpFamily::kGemmFp8,
        kEveryLayer, wo_a);
    add(s, OpId::kWoB, OpFamily::kGemmFp8, kEveryLayer,
        fp8_gemm(model_.hidden, static_cast<double>(model_.o_groups) * model_.o_lora / tp_));
  }

  void feed_forward_half(const Scope& s) {
    constexpr Segment kFfn = Segment::kFeedForward;
    const double inter = model_.expert_inter / tp_;
    add(s, OpId::kGate, OpFamily::kGemmBf16, kEveryLayer,
        bf16_gemm(model_.num_experts, model_.hidden, 32.0));
    add(s, OpId::kRouterTopK, OpFamily::kElementwise, kEveryLayer,
        elementwise(model_.num_experts * kFp32 + model_.top_k * 2.0 * kFp32));
    MoeLaunch moe;
    moe.hidden = model_.hidden;
    moe.inter = inter;
    const int num_experts = s.draft ? model_.draft_experts : model_.num_experts;
    const int top_k = s.draft ? model_.draft_top_k : model_.top_k;
    moe.top_k = top_k;
    moe.num_experts = num_experts;
    moe.local_experts = static_cast<double>(num_experts) / settings_.expert_parallel;
    moe.waiting_ranks = settings_.expert_parallel;
    if (settings_.expert_parallel > 1) {
      moe.inter = static_cast<double>(model_.expert_inter) * settings_.expert_parallel / tp_;
    }
    moe.routing = settings_.routing;
    moe.power_law_alpha = settings_.power_law_alpha;
    moe.neighbour_correlation = settings_.neighbour_correlation;
    const ExpertFormat format = s.draft ? model_.mtp_expert_format : model_.expert_format;
    const double mxfp4_scale_bits = settings_.traits.mxfp4_scales_as_fp32 ? 1.0 : 0.25;
    moe.weight_bits = format == ExpertFormat::kMxfp4 ? 4.0 + mxfp4_scale_bits : 4.5;
    add(s, OpId::kRoutedExperts, OpFamily::kMoe, kEveryLayer, moe, kFfn, 0);

    const double shared = inter * model_.num_shared_experts;
    add(s, OpId::kSharedGateUp, OpFamily::kGemmFp8, kEveryLayer,
        fp8_gemm(2.0 * shared, model_.hidden), kFfn, 1);
    add(s, OpId::kSharedSwiglu, OpFamily::kElementwise, kEveryLayer,
        elementwise(3.0 * shared * kBf16), kFfn, 1);
    add(s, OpId::kSharedDown, OpFamily::kGemmFp8, kEveryLayer, fp8_gemm(model_.hidden, shared),
        kFfn, 1);
    add(s, OpId::kMoeCombine, OpFamily::kElementwise, kEveryLayer,
        elementwise((model_.top_k + 2.0) * model_.hidden * kBf16));
    // Casts, fills, index shifts and copies the framework launches between the named kernels.
    add(s, OpId::kFrameworkCopies, OpFamily::kElementwise, kEveryLayer,
        elementwise(model_.hidden * kBf16));
    if (tp_ > 1.0) {
      // Two per layer; the embedding's is added once with the head.
      add(s, OpId::kAllReduce, OpFamily::kCollective, {2, 2, 2},
          collective(CollectiveKind::kAllReduce, model_.hidden * kBf16));
    }
  }

  void head(const Scope& s) {
    embedding_reduce(s);
    logits(s);
    once(OpId::kSampling, OpFamily::kHead, elementwise(model_.vocab * kFp32), s);
  }

  /// The all-reduce of the vocabulary-parallel embedding joins those of the layers.
  void embedding_reduce(const Scope& s) {
    for (StepOp& op : graph_.ops) {
      if (op.id == OpId::kAllReduce && op.draft == s.draft && op.rows == s.rows) op.count += 1.0;
    }
  }

  void logits(const Scope& s) {
    const double streams_bytes = model_.hc_streams * model_.hidden * kBf16;
    once(OpId::kHcHead, OpFamily::kHead,
         elementwise(streams_bytes + model_.hidden * kBf16,
                     model_.hc_streams * model_.hc_streams * model_.hidden * kFp32),
         s);
    once(OpId::kLmHead, OpFamily::kHead, bf16_gemm(model_.vocab / tp_, model_.hidden), s);
    if (tp_ > 1.0) {
      once(OpId::kAllGather, OpFamily::kCollective,
           collective(CollectiveKind::kAllGather, model_.vocab * kBf16), s);
    }
  }

  void mtp_pass(int pass) {
    Scope s;
    s.draft = true;
    if (pass > 0) s.rows = Rows::kPerRequest;
    s.layers[static_cast<std::size_t>(LayerKind::kSwa)] = 1.0;
    // Passes after the first are alike: one group of ops with a count of passes.
    if (pass > 1) {
      for (StepOp& op : graph_.ops) {
        if (op.rows == Rows::kPerRequest) op.count *= (pass + 0.0) / (pass - 1.0);
      }
      return;
    }
    once(OpId::kEmbedding, OpFamily::kDraft, elementwise(model_.hidden * kBf16 * 2.0), s);
    once(OpId::kMtpEProj, OpFamily::kDraft, fp8_gemm(model_.hidden, model_.hidden), s);
    once(OpId::kMtpHProj, OpFamily::kDraft, fp8_gemm(model_.hidden, model_.hidden), s, 1.0,
         model_.hc_streams);
    attention_half(s);
    feed_forward_half(s);
    head(s);
  }

  /// One pass over a block of noise tokens behind the last accepted one; then a chain that corrects
  /// each position's logits by the token sampled before it. The verified tokens' hidden states of
  /// the target layers become keys of every stage. Source: DeepSeek's reference DSparkBlock (facts
  /// section 6); launches checked against a published profile
  /// (tests/serving/dspark_graph_test.cpp). Leaves out the confidence head, a dot product a
  /// position.
  void dspark_block() {
    const double stages = model_.num_mtp_layers;
    const double block = settings_.num_draft_tokens;
    const Scope verified{.layers = {}, .draft = true, .rows = Rows::kStep};
    once(OpId::kDsparkMainProj, OpFamily::kDraft,
         fp8_gemm(model_.hidden, static_cast<double>(model_.dspark_target_layers) * model_.hidden),
         verified);
    once(OpId::kDsparkContextKv, OpFamily::kDraft, fp8_gemm(model_.head_dim, model_.hidden),
         verified, stages);
    once(OpId::kQNormRopeKvInsert, OpFamily::kDraft, elementwise(2.0 * model_.head_dim * kBf16),
         verified, stages);

    Scope drafted{.layers = {}, .draft = true, .rows = Rows::kBlock};
    drafted.layers[static_cast<std::size_t>(LayerKind::kSwa)] = stages;
    once(OpId::kEmbedding, OpFamily::kDraft, elementwise(model_.hidden * kBf16 * 2.0), drafted);
    attention_half(drafted);
    feed_forward_half(drafted);
    embedding_reduce(drafted);
    logits(drafted);

    const Scope position{.layers = {}, .draft = true, .rows = Rows::kPerRequest};
    const double rank = model_.dspark_markov_rank;
    once(OpId::kMarkovEmbedding, OpFamily::kDraft, elementwise(2.0 * rank * kBf16), position,
         block);
    if (tp_ > 1.0) {  // its table is split over the vocabulary, the head's matrix is not
      once(OpId::kAllReduce, OpFamily::kDraft, collective(CollectiveKind::kAllReduce, rank * kBf16),
           position, block);
    }
    once(OpId::kMarkovHead, OpFamily::kDraft, bf16_gemm(model_.vocab, rank), position, block);
    once(OpId::kSampling, OpFamily::kDraft, elementwise(model_.vocab * kFp32), position, block);
  }

  const ModelConfig& model_;
  const GraphSettings& settings_;
  double tp_;
  StepGraph graph_;
  Scope layers_{.layers = {static_cast<double>(model_.count(LayerKind::kSwa)),
                           static_cast<double>(model_.count(LayerKind::kCsa)),
                           static_cast<double>(model_.count(LayerKind::kHca))}};
};

}  // namespace

StepGraph build_step_graph(const ModelConfig& model, const GraphSettings& settings) {
  return GraphBuilder(model, settings).build();
}

}  // namespace fulcrum
