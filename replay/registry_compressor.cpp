#include <algorithm>
#include <cmath>

#include "kernels/indexer/compressor.h"
#include "kernels/indexer/indexer_launch.h"
#include "kernels/indexer/indexer_reference.h"
#include "replay/case_parts.h"
#include "replay/random_rows.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::CompressedRow;
using kernels::CompressorShape;
using kernels::DeviceBuffer;
using kernels::IndexPool;
using kernels::KvPool;

constexpr int kPositions = 8192;
constexpr int kRowsPerPageLog2 = 6;

CompressorShape compressor_shape(const Shape& s, CompressedRow kind) {
  const bool overlap = s["ratio"] == 4;
  const int ring = s.as_int("ratio") * (overlap ? 2 : 1);
  return {.num_requests = s.as_int("requests"),
          .tokens_per_request = s.as_int("tokens"),
          .ratio = s.as_int("ratio"),
          .overlap = overlap,
          // Engines double the rings under speculation, so that a rejected draft overwrites nothing
          // in use.
          .ring_rows = s["tokens"] > 1 ? 2 * ring : ring,
          .kind = kind};
}

// `emit` of a shape: 1 = the last token of every request closes a group, 0 = none does, 2 =
// whatever the random positions give.
std::vector<std::int32_t> first_positions(const Shape& s, std::uint64_t seed) {
  std::vector<std::int32_t> random = distinct_values(s.as_int("requests"), kPositions - 600, seed);
  std::vector<std::int32_t> positions;
  const int ratio = s.as_int("ratio");
  const int tokens = s.as_int("tokens");
  for (std::size_t r = 0; r < random.size(); ++r) {
    const int group_start = random[r] / ratio * ratio;
    if (s["emit"] == 1) positions.push_back(group_start + 2 * ratio - tokens);
    if (s["emit"] == 0) positions.push_back(group_start);
    // Some requests are still in their first groups.
    if (s["emit"] == 2) positions.push_back(r % 3 == 0 ? static_cast<std::int32_t>(r) : random[r]);
  }
  return positions;
}

double rows_per_request(const Shape& s) { return s["emit"] == 1 ? 1.0 : 0.0; }

template <CompressedRow kKind>
class CompressorCase : public Case {
 public:
  static constexpr int kDim = kernels::compressor_dim(kKind);

  CompressorCase(const Shape& s, const CaseOptions& o)
      : shape_(compressor_shape(s, kKind)),
        width_(static_cast<std::size_t>(kernels::compressor_width(shape_))),
        num_tokens_(product({s["requests"], s["tokens"]})),
        ring_size_(product({s["requests"], shape_.ring_rows}) * width_),
        projected_(random_floats(num_tokens_ * 2 * width_, o.seed, -2.0F, 2.0F)),
        ape_(random_floats(product({s["ratio"]}) * width_, o.seed + 1)),
        positions_(first_positions(s, o.seed + 2)),
        slots_(distinct_values(s.as_int("requests"), s.as_int("requests"), o.seed + 3)),
        values_(random_floats(ring_size_ * static_cast<std::size_t>(o.num_sets), o.seed + 4, -2.0F,
                              2.0F)),
        scores_(random_floats(ring_size_ * static_cast<std::size_t>(o.num_sets), o.seed + 5, -2.0F,
                              2.0F)),
        norm_weight_(random_bf16(kDim, o.seed + 6, 0.5F, 1.5F)),
        table_(rotary_table(kPositions, 160000.0)),
        device_table_(table_),
        rows_(distinct_values(static_cast<int>(num_tokens_), static_cast<int>(num_tokens_),
                              o.seed + 7)),
        pool_(pool_bytes()) {
    pool_.zero();
    problem_ = {.shape = shape_,
                .projected = projected_.data(),
                .ape = ape_.data(),
                .first_positions = positions_.data(),
                .state_slots = slots_.data(),
                .norm_weight = norm_weight_.data(),
                .cos_sin = device_table_.data(),
                .rows = rows_.data(),
                .pool = kv_pool(pool_.data()),
                .index_pool = {.pages = pool_.data()}};
  }

  void launch(int set, cudaStream_t stream) override {
    problem_.value_ring = values_.data() + static_cast<std::size_t>(set) * ring_size_;
    problem_.score_ring = scores_.data() + static_cast<std::size_t>(set) * ring_size_;
    FULCRUM_CUDA_CHECK(kernels::compress(problem_, stream));
  }

  Verification verify(cudaStream_t stream) override {
    pool_.poison();
    auto values = download_prefix(values_, ring_size_);
    auto scores = download_prefix(scores_, ring_size_);
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto projected = projected_.download();
    const auto ape = ape_.download();
    const auto positions = positions_.download();
    const auto slots = slots_.download();
    const auto norm_weight = norm_weight_.download();
    const auto rows = rows_.download();
    kernels::CompressorProblem host = problem_;
    host.projected = projected.data();
    host.ape = ape.data();
    host.first_positions = positions.data();
    host.state_slots = slots.data();
    host.value_ring = values.data();
    host.score_ring = scores.data();
    host.norm_weight = norm_weight.data();
    host.cos_sin = table_.data();

    std::vector<double> expected;
    std::vector<std::int32_t> expected_rows;
    for (int request = 0; request < shape_.num_requests; ++request) {
      for (int token = 0; token < shape_.tokens_per_request; ++token) {
        const auto row = kernels::compressor_reference(host, request, token);
        if (!row) continue;
        expected.insert(expected.end(), row->begin(), row->end());
        expected_rows.push_back(
            rows[static_cast<std::size_t>(request * shape_.tokens_per_request + token)]);
      }
    }
    // After the rows have been computed from the rings of before: what the rings must hold now.
    apply_tokens(projected, ape, positions, slots, values, scores);
    const auto as_doubles = [](const std::vector<float>& v) {
      return std::vector<double>(v.begin(), v.end());
    };
    Verification verdict = merge(
        compare(download_prefix(values_, ring_size_), as_doubles(values), {}, kExact, "value ring"),
        compare(download_prefix(scores_, ring_size_), as_doubles(scores), {}, kExact,
                "score ring"));
    if (!expected_rows.empty()) verdict = merge(verdict, compare_rows(expected, expected_rows));
    return verdict;
  }

 private:
  static KvPool kv_pool(std::uint8_t* bytes) {
    return {.pages = bytes,
            .rows_per_page_log2 = kRowsPerPageLog2,
            .page_stride_bytes = kernels::kv_page_stride_bytes(kRowsPerPageLog2)};
  }
  std::size_t pool_bytes() const {
    const auto pages = static_cast<std::int64_t>(num_tokens_ + 63) / 64;
    return product({pages, kKind == CompressedRow::kAttention
                               ? kernels::kv_page_stride_bytes(kRowsPerPageLog2)
                               : IndexPool{}.page_stride_bytes});
  }

  void apply_tokens(const std::vector<float>& projected, const std::vector<float>& ape,
                    const std::vector<std::int32_t>& positions,
                    const std::vector<std::int32_t>& slots, std::vector<float>& values,
                    std::vector<float>& scores) const {
    const auto ratio = static_cast<std::size_t>(shape_.ratio);
    const auto ring_rows = static_cast<std::size_t>(shape_.ring_rows);
    const auto per_request = static_cast<std::size_t>(shape_.tokens_per_request);
    for (std::size_t token = 0; token < num_tokens_; ++token) {
      const std::size_t request = token / per_request;
      const auto position = static_cast<std::size_t>(positions[request]) + token % per_request;
      const std::size_t at =
          (static_cast<std::size_t>(slots[request]) * ring_rows + position % ring_rows) * width_;
      for (std::size_t c = 0; c < width_; ++c) {
        values[at + c] = projected[token * 2 * width_ + c];
        scores[at + c] =
            projected[(token * 2 + 1) * width_ + c] + ape[position % ratio * width_ + c];
      }
    }
  }

  Verification compare_rows(const std::vector<double>& expected,
                            const std::vector<std::int32_t>& rows) const {
    auto bytes = pool_.download();
    if constexpr (kKind == CompressedRow::kAttention) {
      return compare_kv_rows(expected, rows, kv_pool(bytes.data()));
    } else {
      std::vector<float> stored;
      std::vector<double> bounds;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto values = kernels::decode_index_row({.pages = bytes.data()}, rows[r]);
        double largest = 1e-4;
        for (std::size_t d = 0; d < kDim; ++d)
          largest = std::max(largest, std::fabs(expected[r * kDim + d]));
        for (std::size_t d = 0; d < kDim; ++d) {
          stored.push_back(static_cast<float>(values[d]));
          // Half an ulp of E4M3, and the binary32 error of the 128-term sum.
          bounds.push_back(
              std::max(0x1p-4 * std::fabs(expected[r * kDim + d]), 0x1p-10 * largest / 448.0) +
              2e-6 * largest);
        }
      }
      return compare(stored, expected, bounds, {.relative = 0, .of_magnitude = 1}, "index key");
    }
  }

  CompressorShape shape_;
  std::size_t width_;
  std::size_t num_tokens_;
  std::size_t ring_size_;
  DeviceBuffer<float> projected_;
  DeviceBuffer<float> ape_;
  DeviceBuffer<std::int32_t> positions_;
  DeviceBuffer<std::int32_t> slots_;
  DeviceBuffer<float> values_;
  DeviceBuffer<float> scores_;
  DeviceBuffer<std::uint16_t> norm_weight_;
  std::vector<float> table_;
  DeviceBuffer<float> device_table_;
  DeviceBuffer<std::int32_t> rows_;
  DeviceBuffer<std::uint8_t> pool_;
  kernels::CompressorProblem problem_;
};

template <CompressedRow kKind>
KernelEntry compressor_entry(const char* name, const char* summary) {
  return {
      .name = name,
      .family = "indexer",
      .summary = summary,
      .dimensions = {dimension("requests", "requests", 1, 1, 1024),
                     dimension("tokens", "tokens per request: 1 + drafts", 1, 1, 16),
                     dimension("ratio", "tokens per compressed row: 4 (overlapping) or 128", 4, 4,
                               128, 4),
                     dimension("emit", "0: no row closes, 1: one per request, 2: random", 1, 0, 2)},
      .claim =
          [](const Shape& s) {
            return kernels::compressor_claim(compressor_shape(s, kKind), rows_per_request(s));
          },
      .rotating_bytes =
          [](const Shape& s) {
            const CompressorShape shape = compressor_shape(s, kKind);
            return 8.0 * static_cast<double>(s["requests"]) * shape.ring_rows *
                   kernels::compressor_width(shape);
          },
      .unsupported = any_device,
      .make = make_case<CompressorCase<kKind>>,
      .verify_shapes =
          "requests=1;requests=5,emit=0;requests=9,emit=2;requests=7,tokens=3,emit=2;"
          "requests=3,tokens=6,emit=1;requests=2,tokens=9,emit=2;requests=1,ratio=128;"
          "requests=5,tokens=2,ratio=128,emit=1;requests=4,ratio=128,emit=2",
      .calibration_shapes =
          "requests=1,emit=0;requests=16,emit=0;requests=64,emit=0;requests=1;requests=16;"
          "requests=64;requests=1,ratio=128;requests=16,ratio=128;"
          "requests=64,ratio=128,emit=0"};
}

}  // namespace

std::vector<KernelEntry> compressor_entries() {
  KernelEntry main = compressor_entry<CompressedRow::kAttention>(
      "compressor", "state rings, pooling, norm, rotary position and 584-byte row store");
  KernelEntry index = compressor_entry<CompressedRow::kIndexKey>(
      "index_compressor", "the indexer's compressor: Hadamard-rotated 132-byte keys");
  index.calibration_shapes = "requests=1,emit=0;requests=64,emit=0;requests=1;requests=64";
  return {main, index};
}

}  // namespace fulcrum::replay
