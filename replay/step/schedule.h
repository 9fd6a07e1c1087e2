// The step graph's ops in the order in which one rank launches them. The graph (model/step_graph)
// says which ops there are, how often and with what shapes; this file adds only their order inside
// a layer and the branch of side streams they may run on. No CUDA.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/step_graph.h"

namespace fulcrum::replay {

/// One execution of an op, or one of its parts where other ops run between them.
struct ScheduledOp {
  std::size_t op = 0;  ///< index into StepGraph::ops
  OpId id = OpId::kEmbedding;
  LayerKind kind = LayerKind::kSwa;  ///< of its layer; kSwa outside layers
  int layer = -1;                    ///< 0.., num_layers for the draft layer, -1 outside layers
  int pass = 0;                      ///< 0: target pass; 1..K: draft passes
  int site = 0;                      ///< which of the op's executions in its layer
  int part = 0;                      ///< of an execution that is cut in two
  int ordinal = 0;  ///< executions of this id before it in the target pass: picks its weights
  OpId feeds = OpId::kEmbedding;  ///< kActQuant: the GEMM whose input it writes
  Segment segment = Segment::kSerial;
  int branch = 0;
};

/// All launches of one step in order: the target pass, then the draft passes. Throws
/// std::logic_error when its executions are not the graph's counts.
std::vector<ScheduledOp> schedule_step(const StepGraph& graph);

/// Why no launch belongs to the op on one rank alone; empty when there is one.
std::string absence_of(OpId id, bool has_collectives);

/// Requests, drafts per step and tokens in the cache of every request.
struct StepCell {
  int requests = 1;
  int drafts = 0;
  int context = 1024;
  int tokens() const { return requests * (1 + drafts); }
  bool operator==(const StepCell&) const = default;
};

StepState state_of(const StepCell& cell);

/// Query tokens that a scheduled op sees: later draft passes run one token per request.
int tokens_of(const ScheduledOp& op, const StepCell& cell);

}  // namespace fulcrum::replay
