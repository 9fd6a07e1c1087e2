#include "replay/step/schedule.h"

#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

namespace fulcrum::replay {
namespace {

struct Slot {
  OpId id;
  int site = 0;
  int part = 0;
  OpId feeds = OpId::kEmbedding;
  Segment segment = Segment::kSerial;
  int branch = 0;
};

constexpr Segment kIn = Segment::kAttentionInput;
constexpr Segment kFfn = Segment::kFeedForward;

/// One layer of any kind; entries whose op the layer's kind does not have are skipped. Norm and
/// quantisation of the low-rank query come before the branches part, because two of them read it.
constexpr std::array kLayer{
    Slot{.id = OpId::kMhcPre},
    Slot{.id = OpId::kActQuant, .feeds = OpId::kWqkvA},
    Slot{.id = OpId::kWqkvA},
    Slot{.id = OpId::kQNormRopeKvInsert},
    Slot{.id = OpId::kActQuant, .site = 1, .feeds = OpId::kWqB, .segment = kIn},
    Slot{.id = OpId::kWqB, .segment = kIn},
    Slot{.id = OpId::kQNormRopeKvInsert, .part = 1, .segment = kIn},
    Slot{.id = OpId::kActQuant, .site = 2, .feeds = OpId::kIndexerWqB, .segment = kIn, .branch = 1},
    Slot{.id = OpId::kIndexerWqB, .segment = kIn, .branch = 1},
    Slot{.id = OpId::kIndexerWeightsProj, .segment = kIn, .branch = 1},
    Slot{.id = OpId::kIndexerQuant, .segment = kIn, .branch = 1},
    Slot{.id = OpId::kIndexerCompressor, .segment = kIn, .branch = 2},
    Slot{.id = OpId::kCompressorCsa, .segment = kIn, .branch = 2},
    Slot{.id = OpId::kCompressorHca, .segment = kIn, .branch = 2},
    Slot{.id = OpId::kCompressorState, .segment = kIn, .branch = 2},
    Slot{.id = OpId::kCompressorEmit, .segment = kIn, .branch = 2},
    Slot{.id = OpId::kCompressorState, .site = 1, .segment = kIn, .branch = 2},
    Slot{.id = OpId::kCompressorEmit, .site = 1, .segment = kIn, .branch = 2},
    Slot{.id = OpId::kIndexerLogits},
    Slot{.id = OpId::kIndexerTopK},
    Slot{.id = OpId::kAttentionSwa},
    Slot{.id = OpId::kAttentionCsa},
    Slot{.id = OpId::kAttentionHca},
    Slot{.id = OpId::kInverseRope},
    Slot{.id = OpId::kWoA},
    Slot{.id = OpId::kActQuant, .site = 3, .feeds = OpId::kWoB},
    Slot{.id = OpId::kWoB},
    Slot{.id = OpId::kAllReduce},
    Slot{.id = OpId::kMhcPost},
    Slot{.id = OpId::kMhcPre, .site = 1},
    Slot{.id = OpId::kGate},
    Slot{.id = OpId::kRouterTopK},
    Slot{.id = OpId::kRoutedExperts, .segment = kFfn},
    Slot{.id = OpId::kActQuant,
         .site = 4,
         .feeds = OpId::kSharedGateUp,
         .segment = kFfn,
         .branch = 1},
    Slot{.id = OpId::kSharedGateUp, .segment = kFfn, .branch = 1},
    Slot{.id = OpId::kSharedSwiglu, .segment = kFfn, .branch = 1},
    Slot{
        .id = OpId::kActQuant, .site = 5, .feeds = OpId::kSharedDown, .segment = kFfn, .branch = 1},
    Slot{.id = OpId::kSharedDown, .segment = kFfn, .branch = 1},
    Slot{.id = OpId::kMoeCombine},
    Slot{.id = OpId::kFrameworkCopies},
    Slot{.id = OpId::kAllReduce, .site = 1},
    Slot{.id = OpId::kMhcPost, .site = 1},
};

class Scheduler {
 public:
  explicit Scheduler(const StepGraph& graph) : graph_(graph) {}

  std::vector<ScheduledOp> run() {
    const int num_layers = graph_.model.num_layers;
    outside(OpId::kEmbedding);
    outside(OpId::kAllReduce);  // of the vocabulary-parallel embedding
    for (int layer = 0; layer < num_layers; ++layer) {
      layer_ops(layer, graph_.model.layers[static_cast<std::size_t>(layer)]);
    }
    head();
    for (pass_ = 1; pass_ <= graph_.settings.num_draft_tokens; ++pass_) {
      outside(OpId::kEmbedding);
      outside(OpId::kAllReduce);
      outside(OpId::kMtpEProj);
      outside(OpId::kMtpHProj);
      layer_ops(num_layers, LayerKind::kSwa);
      head();
    }
    check();
    return std::move(ops_);
  }

 private:
  void head() {
    for (const OpId id : {OpId::kHcHead, OpId::kLmHead, OpId::kAllGather, OpId::kSampling}) {
      outside(id);
    }
  }

  const StepOp* find(OpId id, std::size_t& index) const {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const StepOp& op = graph_.ops[i];
      if (op.id == id && op.draft == (pass_ > 0) && (op.rows == Rows::kPerRequest) == (pass_ > 1)) {
        index = i;
        return &op;
      }
    }
    return nullptr;
  }

  void outside(OpId id) { add({.id = id}, -1, LayerKind::kSwa); }

  void layer_ops(int layer, LayerKind kind) {
    for (const Slot& slot : kLayer) {
      // Only CSA layers have an indexer to quantise for; only they pool twice.
      const bool indexer = slot.feeds == OpId::kIndexerWqB;
      if (indexer && kind != LayerKind::kCsa) continue;
      std::size_t index = 0;
      const StepOp* op = find(slot.id, index);
      if (op == nullptr) continue;
      const double per_layer = op->per_layer[static_cast<std::size_t>(kind)];
      if (per_layer == 0.0) continue;
      if (slot.id != OpId::kActQuant && slot.site >= static_cast<int>(per_layer)) continue;
      add(slot, layer, kind);
    }
  }

  void add(const Slot& slot, int layer, LayerKind kind) {
    ScheduledOp scheduled;
    if (find(slot.id, scheduled.op) == nullptr) return;
    scheduled.id = slot.id;
    scheduled.kind = kind;
    scheduled.layer = layer;
    scheduled.pass = pass_;
    scheduled.site = slot.site;
    scheduled.part = slot.part;
    scheduled.feeds = slot.feeds;
    scheduled.segment = slot.segment;
    scheduled.branch = slot.branch;
    int& next = next_[{slot.id, pass_ > 0}];
    if (slot.part > 0) --next;
    // Draft passes share one layer's weights, which follow those of the target's layers.
    const int before = pass_ > 0 ? next_[{slot.id, false}] : 0;
    scheduled.ordinal = before + (pass_ > 0 ? slot.site : next);
    ++next;
    ops_.push_back(scheduled);
  }

  void check() const {
    std::vector<double> executions(graph_.ops.size(), 0.0);
    for (const ScheduledOp& op : ops_) {
      if (op.part == 0) executions[op.op] += 1.0;
    }
    for (std::size_t i = 0; i < executions.size(); ++i) {
      if (std::fabs(executions[i] - graph_.ops[i].count) > 1e-9) {
        throw std::logic_error("schedule_step: " + std::string(name_of(graph_.ops[i].id)) +
                               " is scheduled " + std::to_string(executions[i]) +
                               " times, the graph counts " + std::to_string(graph_.ops[i].count));
      }
    }
  }

  const StepGraph& graph_;
  int pass_ = 0;
  std::map<std::pair<OpId, bool>, int> next_;
  std::vector<ScheduledOp> ops_;
};

}  // namespace

std::vector<ScheduledOp> schedule_step(const StepGraph& graph) { return Scheduler(graph).run(); }

std::string absence_of(OpId id, bool has_collectives) {
  switch (id) {
    case OpId::kAllReduce:
    case OpId::kAllGather:
      return has_collectives ? "" : "one GPU replays one rank: nothing to exchange";
    case OpId::kCompressorEmit:
      return "the compressor kernel stores the pooled row in the launch that updates the state";
    case OpId::kMoeCombine:
      return "the last launch of the moe kernels sums a token's experts";
    case OpId::kFrameworkCopies:
      return "the framework's own casts and fills, which this repository does not launch";
    default:
      return "";
  }
}

StepState state_of(const StepCell& cell) {
  StepState state;
  state.requests = cell.requests;
  state.tokens_per_request = 1.0 + cell.drafts;
  state.context = cell.context;
  state.logits_rows = cell.tokens();
  return state;
}

int tokens_of(const ScheduledOp& op, const StepCell& cell) {
  return op.pass > 1 ? cell.requests : cell.tokens();
}

}  // namespace fulcrum::replay
