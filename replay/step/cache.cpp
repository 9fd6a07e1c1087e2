#include "replay/step/cache.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include "replay/case_parts.h"
#include "replay/random_fill.h"
#include "replay/random_rows.h"

namespace fulcrum::replay {
namespace {

using kernels::CompressedRow;
using kernels::CompressorShape;
using kernels::DeviceBuffer;

constexpr int kPageRows = 1 << RankCache::kRowsPerPageLog2;
constexpr double kRopeTheta = 160000.0;  // of the compressed layers, model_facts section 2.1

int whole_pages(int rows) { return (rows + kPageRows - 1) / kPageRows * kPageRows; }

std::size_t pool_bytes(std::int64_t rows, std::int64_t page_stride_bytes) {
  return product({rows / kPageRows, page_stride_bytes});
}

constexpr std::int64_t kKvPageBytes = kernels::kv_page_stride_bytes(RankCache::kRowsPerPageLog2);

}  // namespace

kernels::KvPool RankCache::pool(DeviceBuffer<std::uint8_t>& bytes) const {
  return {.pages = bytes.data(),
          .rows_per_page_log2 = kRowsPerPageLog2,
          .page_stride_bytes = kKvPageBytes};
}

RankCache::RankCache(const StepGraph& graph, const CacheLimits& limits, std::uint64_t seed)
    : limits_(limits),
      csa_ratio_(graph.model.csa_ratio),
      hca_ratio_(graph.model.hca_ratio),
      index_top_k_(graph.model.index_top_k),
      seed_(seed) {
  const int requests = limits.max_requests;
  std::vector<LayerKind> kinds = graph.model.layers;
  kinds.push_back(LayerKind::kSwa);  // the draft layer
  StepCell widest{.requests = requests, .drafts = limits.max_drafts, .context = limits.max_context};
  std::uint64_t next = seed;
  const auto kv_pool = [&](int rows_each) {
    const std::int64_t rows = std::int64_t{requests} * rows_each;
    DeviceBuffer<std::uint8_t> bytes(pool_bytes(rows, kKvPageBytes));
    fill_kv_rows(pool(bytes), rows, ++next, nullptr);
    bytes_ += static_cast<double>(bytes.size());
    return bytes;
  };
  const auto ring = [&](const CompressorShape& shape) {
    const std::size_t floats =
        product({requests, shape.ring_rows, kernels::compressor_width(shape)});
    bytes_ += 4.0 * static_cast<double>(floats);
    return random_floats(floats, ++next, -2.0F, 2.0F);
  };
  for (const LayerKind kind : kinds) {
    LayerCache cache;
    cache.window = kv_pool(whole_pages(graph.model.window + kPageRows));
    if (kind != LayerKind::kSwa) {
      cache.compressed = kv_pool(rows_per_request(kind));
      cache.values = ring(compressor(kind, false, widest));
      cache.scores = ring(compressor(kind, false, widest));
    }
    if (kind == LayerKind::kCsa) {
      const std::int64_t rows = std::int64_t{requests} * rows_per_request(kind);
      cache.index_keys =
          DeviceBuffer<std::uint8_t>(pool_bytes(rows, kernels::IndexPool{}.page_stride_bytes));
      fill_index_rows({.pages = cache.index_keys.data()}, rows, ++next, nullptr);
      bytes_ += static_cast<double>(cache.index_keys.size());
      cache.index_values = ring(compressor(kind, true, widest));
      cache.index_scores = ring(compressor(kind, true, widest));
    }
    cache.first_positions = DeviceBuffer<std::int32_t>(product({requests}));
    layers_.push_back(std::move(cache));
  }
  slots_ = DeviceBuffer<std::int32_t>(distinct_values(requests, requests, seed + 5));
  cos_sin_ = DeviceBuffer<float>(
      rotary_table(limits.max_context + hca_ratio_ + limits.max_drafts + 2, kRopeTheta));
}

int RankCache::rows_per_request(LayerKind kind) const {
  const int ratio = kind == LayerKind::kCsa ? csa_ratio_ : hca_ratio_;
  return whole_pages(limits_.max_context / ratio) + kPageRows;  // a page for rows that close
}

CompressorShape RankCache::compressor(LayerKind kind, bool index, const StepCell& cell) const {
  const bool overlap = kind == LayerKind::kCsa;
  const int ratio = overlap ? csa_ratio_ : hca_ratio_;
  const int ring = ratio * (overlap ? 2 : 1);
  return {.num_requests = cell.requests,
          .tokens_per_request = 1 + cell.drafts,
          .ratio = ratio,
          .overlap = overlap,
          // Engines double the rings under speculation: a rejected draft overwrites nothing in use.
          .ring_rows = cell.drafts > 0 ? 2 * ring : ring,
          .kind = index ? CompressedRow::kIndexKey : CompressedRow::kAttention};
}

int RankCache::selected_rows(LayerKind kind) const {
  if (kind == LayerKind::kSwa) return 0;
  if (kind == LayerKind::kCsa) return std::min(index_top_k_, num_keys_);
  return cell_.context / hca_ratio_;
}

int RankCache::row_slots(LayerKind kind) const {
  if (kind == LayerKind::kCsa) return index_top_k_;  // what top-k writes, -1 where keys run out
  return std::max(1, selected_rows(kind));
}

const std::int32_t* RankCache::rows(LayerKind kind) const {
  return kind == LayerKind::kCsa ? csa_rows_.data() : hca_rows_.data();
}
const std::int32_t* RankCache::row_counts(LayerKind kind) const {
  // Sliding-window layers attend no compressed row: a counter of zeros behind the HCA counts.
  if (kind == LayerKind::kCsa) return csa_counts_.data();
  return hca_counts_.data() + (kind == LayerKind::kSwa ? hca_counts_.size() / 2 : 0);
}
const std::int32_t* RankCache::closed_rows(LayerKind kind) const {
  return kind == LayerKind::kCsa ? csa_closed_.data() : hca_closed_.data();
}

TokenTables RankCache::token_tables(int tokens_per_request, int window) const {
  const int ring = whole_pages(window + kPageRows);
  std::vector<std::int32_t> positions, rows, counts, stores;
  for (int request = 0; request < limits_.max_requests; ++request) {
    for (int token = 0; token < tokens_per_request; ++token) {
      const int position = cell_.context + token;
      positions.push_back(position);
      counts.push_back(std::min(window, position + 1));
      stores.push_back(request * ring + position % ring);
      for (int back = 0; back < window; ++back) {
        const bool exists = back <= position;
        rows.push_back(exists ? request * ring + (position - back) % ring : -1);
      }
    }
  }
  TokenTables tables;
  tables.positions = DeviceBuffer<std::int32_t>(positions);
  tables.window_rows = DeviceBuffer<std::int32_t>(rows);
  tables.window_counts = DeviceBuffer<std::int32_t>(counts);
  tables.store_rows = DeviceBuffer<std::int32_t>(stores);
  return tables;
}

void RankCache::configure(const StepGraph& graph, const StepCell& cell) {
  if (cell.requests > limits_.max_requests || cell.drafts > limits_.max_drafts ||
      cell.context > limits_.max_context) {
    throw std::invalid_argument("RankCache::configure: the cell exceeds what was allocated");
  }
  if (cell.drafts == cell_.drafts && cell.context == cell_.context && csa_rows_.size() > 0) {
    cell_ = cell;
    return;
  }
  cell_ = cell;
  const int tokens = 1 + cell.drafts;
  const int requests = limits_.max_requests;
  num_keys_ = std::max(1, cell.context / csa_ratio_);
  full_ = token_tables(tokens, graph.model.window);
  single_ = token_tables(1, graph.model.window);

  // Every token of a request chooses for itself: uniform, distinct rows of the request's own.
  const auto choose = [&](LayerKind kind, bool all) {
    std::vector<std::int32_t> rows;
    for (int request = 0; request < requests; ++request) {
      for (int token = 0; token < tokens; ++token) {
        const int count = selected_rows(kind);
        const int range = kind == LayerKind::kCsa ? num_keys_ : std::max(1, count);
        std::vector<std::int32_t> chosen;
        if (all) {
          for (int row = 0; row < count; ++row) chosen.push_back(row);
        } else {
          chosen = distinct_values(count, range,
                                   seed_ + static_cast<std::uint64_t>(request * tokens + token));
        }
        for (std::int32_t& row : chosen) row += request * rows_per_request(kind);
        chosen.resize(static_cast<std::size_t>(row_slots(kind)), -1);
        rows.insert(rows.end(), chosen.begin(), chosen.end());
      }
    }
    return DeviceBuffer<std::int32_t>(rows);
  };
  const auto num_tokens = static_cast<std::size_t>(requests * tokens);
  csa_rows_ = choose(LayerKind::kCsa, false);
  hca_rows_ = choose(LayerKind::kHca, true);
  csa_counts_ = DeviceBuffer<std::int32_t>(
      std::vector<std::int32_t>(num_tokens, selected_rows(LayerKind::kCsa)));
  std::vector<std::int32_t> hca_counts(num_tokens, selected_rows(LayerKind::kHca));
  hca_counts.resize(2 * num_tokens, 0);
  hca_counts_ = DeviceBuffer<std::int32_t>(hca_counts);

  std::vector<std::int32_t> pages;
  std::vector<std::int32_t> csa_closed, hca_closed;
  const int csa_pages = rows_per_request(LayerKind::kCsa) / kPageRows;
  for (int request = 0; request < requests; ++request) {
    for (int token = 0; token < tokens; ++token) {
      for (int page = 0; page < key_slots() / kPageRows; ++page) {
        pages.push_back(request * csa_pages + page);
      }
      csa_closed.push_back((request + 1) * rows_per_request(LayerKind::kCsa) - kPageRows + token);
      hca_closed.push_back((request + 1) * rows_per_request(LayerKind::kHca) - kPageRows + token);
    }
  }
  page_table_ = DeviceBuffer<std::int32_t>(pages);
  key_counts_ = DeviceBuffer<std::int32_t>(std::vector<std::int32_t>(num_tokens, num_keys_));
  csa_closed_ = DeviceBuffer<std::int32_t>(csa_closed);
  hca_closed_ = DeviceBuffer<std::int32_t>(hca_closed);

  // Each layer sees another phase of the pooling, so that one replay averages over the steps in
  // which groups close and those in which none does.
  std::mt19937_64 random(seed_ + 11);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool csa = i < graph.model.layers.size() && graph.model.layers[i] == LayerKind::kCsa;
    const int ratio = csa ? csa_ratio_ : hca_ratio_;
    std::vector<std::int32_t> positions;
    for (int request = 0; request < requests; ++request) {
      positions.push_back(cell.context / ratio * ratio +
                          static_cast<int>(random() % static_cast<std::uint64_t>(ratio)));
    }
    layers_[i].first_positions.upload(positions);
  }
}

}  // namespace fulcrum::replay
