// Launch descriptions: the shape of one kernel (or one fused module) as its cost law sees it.
// All sizes are those of one rank. Plain data; who fills them is model/step_graph (from a model
// config) or calibrate/families (from a measured row).
#pragma once

#include <limits>

#include "model/laws/law_device.h"

namespace fulcrum {

/// C[m,n] = A[m,k] B[n,k]^T, `groups` of them in one launch.
struct GemmLaunch {
  double m = 0.0;
  double n = 0.0;
  double k = 0.0;
  double groups = 1.0;
  NumberFormat compute = NumberFormat::kBf16;  ///< unit that multiplies
  double weight_bits = 16.0;                   ///< stored bits per weight, scales included
  double activation_bits = 16.0;               ///< bits per input element as the kernel reads it
  double output_bits = 16.0;
  /// Distinct weight bytes read between two uses of these weights. In service every layer's weights
  /// come between, so none survives in L2; benchmarks that cycle few copies set it.
  double weight_working_set_bytes = std::numeric_limits<double>::infinity();
  /// Same for inputs and outputs; at least their own size. In service they were just written.
  double activation_working_set_bytes = 0.0;
};

/// How tokens pick experts.
enum class Routing {
  kUniform,     ///< independent uniform top-k per token
  kRoundRobin,  ///< tokens dealt to experts in turn (the tables' `balanced`)
  kPowerLaw,    ///< popularity ~ rank^-alpha
};

/// One rank's routed experts: gate_up [2*inter, hidden], activation, down [hidden, inter].
struct MoeLaunch {
  double tokens = 0.0;  ///< tokens of the launch (all ranks see the same)
  double hidden = 0.0;
  double inter = 0.0;  ///< expert width on this rank (already divided by TP)
  double top_k = 0.0;
  double num_experts = 0.0;    ///< in the model
  double local_experts = 0.0;  ///< on this rank (num_experts / EP)
  /// Ranks that wait for one another after the launch: it is priced for the slowest of them.
  double waiting_ranks = 1.0;
  Routing routing = Routing::kUniform;
  double power_law_alpha = 0.0;  ///< kPowerLaw only
  /// Lag-1 correlation of expert choice between neighbouring tokens of one request, 0 = none.
  double neighbour_correlation = 0.0;
  double tokens_per_request = 1.0;  ///< neighbours that share a request (1 + drafts)
  NumberFormat compute = NumberFormat::kBf16;
  double weight_bits = 4.25;  ///< scales included
  double activation_bits = 16.0;
  bool gated = true;  ///< gate_up has 2*inter rows; false: one projection up
};

/// Sparse MLA decode: q [tokens, heads, head_dim] against window and selected rows.
struct AttentionLaunch {
  double tokens = 0.0;  ///< query tokens (requests x tokens per request)
  double tokens_per_request = 1.0;
  double heads = 0.0;  ///< launched heads, padding included
  double head_dim = 512.0;
  double window_rows = 0.0;           ///< live rows per token, window part
  double selected_rows = 0.0;         ///< live rows per token, compressed part
  double padded_window_rows = 0.0;    ///< rows the kernel walks, window part
  double padded_selected_rows = 0.0;  ///< rows the kernel walks, compressed part
  double row_bytes = 584.0;
};

/// Indexer logits: `heads` x `dim` dot products of each query token with each compressed key.
struct ContextScanLaunch {
  double tokens = 0.0;
  double tokens_per_request = 1.0;
  double keys = 0.0;         ///< live keys per request
  double padded_keys = 0.0;  ///< keys the kernel walks per request (max context / ratio, or = keys)
  double heads = 64.0;
  double dim = 128.0;
  double key_bytes = 132.0;
};

/// Hyper-connection mixing of `streams` residual streams.
struct MhcLaunch {
  double tokens = 0.0;
  double hidden = 0.0;
  double streams = 4.0;
  double sinkhorn_iterations = 20.0;
};

/// A launch that only moves `bytes_per_token * tokens + fixed_bytes`.
struct ElementwiseLaunch {
  double tokens = 0.0;
  double bytes_per_token = 0.0;
  double fixed_bytes = 0.0;
};

enum class CollectiveKind { kAllReduce, kAllGather, kReduceScatter, kAllToAll };

/// One collective among `ranks` GPUs; `bytes` as NCCL counts a message of that kind.
struct CollectiveLaunch {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double bytes = 0.0;
  double ranks = 1.0;
};

}  // namespace fulcrum
