// Key/value caches and request state of one rank: pools of every layer filled with random rows, and
// the tables by which a step's tokens find their rows.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/kv_row.h"
#include "kernels/common/device_buffer.h"
#include "kernels/indexer/compressor.h"
#include "model/step_graph.h"
#include "replay/step/schedule.h"

namespace fulcrum::replay {

/// What the caches are allocated for.
struct CacheLimits {
  int max_requests = 1;
  int max_drafts = 0;
  int max_context = 1024;
  int max_tokens() const { return max_requests * (1 + max_drafts); }
};

/// Caches of one layer. A request owns whole pages.
struct LayerCache {
  kernels::DeviceBuffer<std::uint8_t> window;
  kernels::DeviceBuffer<std::uint8_t> compressed;  ///< CSA and HCA
  kernels::DeviceBuffer<std::uint8_t> index_keys;  ///< CSA
  kernels::DeviceBuffer<float> values, scores;     ///< rings of the compressor
  kernels::DeviceBuffer<float> index_values, index_scores;
  kernels::DeviceBuffer<std::int32_t> first_positions;  ///< [max_requests], a phase of its own
};

/// Tables of one number of tokens per request: what differs between the target pass (and first
/// draft pass) and the later ones.
struct TokenTables {
  kernels::DeviceBuffer<std::int32_t> positions;      ///< [requests, tokens]
  kernels::DeviceBuffer<std::int32_t> window_rows;    ///< [requests, tokens, window]
  kernels::DeviceBuffer<std::int32_t> window_counts;  ///< [requests, tokens]
  kernels::DeviceBuffer<std::int32_t> store_rows;     ///< [requests, tokens], in the window pool
};

class RankCache {
 public:
  static constexpr int kRowsPerPageLog2 = 6;

  RankCache(const StepGraph& graph, const CacheLimits& limits, std::uint64_t seed);

  /// Draws positions and rows for `cell`, which must lie within the limits. Tables cover
  /// max_requests requests, so that an op timed alone can move from request to request.
  void configure(const StepGraph& graph, const StepCell& cell);

  LayerCache& layer(int layer) { return layers_[static_cast<std::size_t>(layer)]; }
  const TokenTables& tables(bool later_pass) const { return later_pass ? single_ : full_; }
  kernels::KvPool pool(kernels::DeviceBuffer<std::uint8_t>& bytes) const;

  /// Compressed rows attended by one token, row slots per token, and rows of one request's pool.
  int selected_rows(LayerKind kind) const;
  int row_slots(LayerKind kind) const;
  const std::int32_t* rows(LayerKind kind) const;
  const std::int32_t* row_counts(LayerKind kind) const;

  int num_keys() const { return num_keys_; }
  int key_slots() const { return (num_keys_ + 63) / 64 * 64; }
  const std::int32_t* page_table() const { return page_table_.data(); }
  const std::int32_t* key_counts() const { return key_counts_.data(); }
  const std::int32_t* closed_rows(LayerKind kind) const;
  const std::int32_t* slots() const { return slots_.data(); }
  const float* cos_sin() const { return cos_sin_.data(); }
  kernels::CompressorShape compressor(LayerKind kind, bool index, const StepCell& cell) const;
  const CacheLimits& limits() const { return limits_; }
  double bytes() const { return bytes_; }

 private:
  TokenTables token_tables(int tokens_per_request, int window) const;
  /// Rows a request owns in a layer's compressed pool.
  int rows_per_request(LayerKind kind) const;

  CacheLimits limits_;
  int csa_ratio_, hca_ratio_, index_top_k_;
  std::uint64_t seed_;
  std::vector<LayerCache> layers_;
  TokenTables full_, single_;
  StepCell cell_;
  int num_keys_ = 0;
  kernels::DeviceBuffer<std::int32_t> csa_rows_, csa_counts_, hca_rows_, hca_counts_;
  kernels::DeviceBuffer<std::int32_t> page_table_, key_counts_, slots_, csa_closed_, hca_closed_;
  kernels::DeviceBuffer<float> cos_sin_;
  double bytes_ = 0.0;
};

}  // namespace fulcrum::replay
