// One rank of the model on one GPU: weights, caches, activations, and the launch of every op of the
// schedule on this repository's kernels. Ops are chained: what one writes the next reads.
//
// Where the chain is not the model's: kernels take contiguous rows, so the parts of the joint query
// and key/value projection are the halves of its buffer and the groups of wo_a blocks of its input;
// experts and selected rows come from a stated draw, not from router and top-k, which run and are
// timed; the shared expert's output is not added to the routed one's, nor are the draft's two
// projections (no kernel here does it). Ops no kernel runs: absence_of().
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/attention/sparse_mla.h"
#include "replay/step/cache.h"
#include "replay/step/schedule.h"
#include "replay/step/weights.h"

namespace fulcrum::replay {

/// All-reduces `elements` BF16 values in place over the ranks of the step.
using AllReduce = std::function<void(std::uint16_t* data, std::size_t elements, cudaStream_t)>;
/// Gathers `elements` floats of each rank into `out`.
using AllGather =
    std::function<void(const float* in, float* out, std::size_t elements, cudaStream_t)>;

class StepRank {
 public:
  StepRank(const StepGraph& graph, const CacheLimits& limits, std::int64_t l2_bytes,
           std::uint64_t seed);

  /// Prepares tables and plans for the cell. Not captured.
  void configure(const StepCell& cell);

  void set_collectives(AllReduce all_reduce, AllGather all_gather) {
    all_reduce_ = std::move(all_reduce);
    all_gather_ = std::move(all_gather);
  }
  bool has_collectives() const { return static_cast<bool>(all_reduce_); }

  /// Enqueues the op's kernels; returns whether there were any. `rotation` moves on to other copies
  /// of the weights and other requests' caches; 0 in a step. Throws kernels::CudaError.
  bool launch(const ScheduledOp& op, cudaStream_t stream, int rotation = 0);

  /// Different rotations of the op before its inputs repeat.
  int num_rotations(OpId id, int executions) const;

  const StepGraph& graph() const { return graph_; }
  const StepCell& cell() const { return cell_; }
  double weight_bytes() const { return weights_.bytes(); }
  double cache_bytes() const { return cache_.bytes(); }

  /// What a step leaves behind: sampled tokens and residual, for comparisons. [tokens],
  /// [tokens, streams, hidden] BF16, [tokens, vocab / TP] of the last head that ran.
  std::vector<std::int32_t> sampled() const;
  std::vector<std::uint16_t> residual() const;
  std::vector<float> logits() const;

  /// Buffers of the chain, by what they hold; for the host composition of the tests.
  struct Activations {
    kernels::DeviceBuffer<std::uint16_t> residual, input, qkv, q_low, query, attention, low,
        sublayer, shared_gate_up, shared_act, shared_out, index_query, e_proj;
    kernels::DeviceBuffer<float> post, comb, mhc_workspace, index_weights, index_weights_scaled,
        projected, index_projected, gate_logits, router_weights, expert_weights, index_logits,
        attention_workspace, logits, gathered, sink, router_bias;
    kernels::DeviceBuffer<std::uint8_t> codes[3], index_codes, moe_workspace, sampling_workspace;
    kernels::DeviceBuffer<float> code_scales[3];
    kernels::DeviceBuffer<std::int32_t> token_ids, router_experts, expert_ids, top_k_rows, tokens;
    kernels::DeviceBuffer<std::uint16_t> norm_weight;
  };
  const Activations& activations() const { return a_; }
  const RankWeights& weights() const { return weights_; }

 private:
  struct Call {  // What all launches of one scheduled op share.
    const ScheduledOp& op;
    int tokens;
    int set;            // copy of the weights
    int first_request;  // of the caches
    int tokens_per_request;
    LayerCache* cache;
    cudaStream_t stream;
  };
  void allocate(std::uint64_t seed);
  void launch_attention_op(const Call& call);
  void launch_indexer_op(const Call& call);
  void launch_projection(const Call& call);
  void launch_feed_forward_op(const Call& call);
  void launch_outside_op(const Call& call);
  void quantize(const Call& call, const std::uint16_t* in, int rows, int dim, int branch);
  void fp8_gemm(const Call& call, int rows, int branch, std::uint16_t* out, int group = 0);
  void bf16_gemm(const Call& call, int rows, const std::uint16_t* in, float* out);
  const GemmLaunch& gemm_of(const ScheduledOp& op) const;

  StepGraph graph_;
  RankWeights weights_;
  RankCache cache_;
  StepCell cell_;
  bool is_sm90_ = false;
  int local_heads_, low_width_, shared_width_, local_vocab_;
  kernels::SparseMlaPlan plans_[2][kNumLayerKinds];  // [later pass][layer kind]
  Activations a_;
  AllReduce all_reduce_;
  AllGather all_gather_;
};

}  // namespace fulcrum::replay
