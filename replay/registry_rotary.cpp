// Kernels around the rotary position: queries, attention outputs, stored rows.
#include <algorithm>
#include <cmath>

#include "kernels/attention/kv_row_reference.h"
#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/elementwise/elementwise_reference.h"
#include "replay/case_parts.h"
#include "replay/random_rows.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;
using kernels::kKvHeadDim;
using kernels::KvPool;

constexpr int kPositions = 4096;

// Positions and table of a batch, on the device and on the host.
struct Rope {
  Rope(std::int64_t num_tokens, std::uint64_t seed)
      : host_table(rotary_table(kPositions, 160000.0)),
        table(host_table),
        positions(product({num_tokens})) {
    fill_int(positions.data(), num_tokens, 0, kPositions - 1, seed, nullptr);
  }
  kernels::RopeTable on_device() const { return {table.data(), positions.data()}; }

  std::vector<float> host_table;
  DeviceBuffer<float> table;
  DeviceBuffer<std::int32_t> positions;
};

// What a rotation is summed from is at most sqrt(2) times the larger of a pair; the bound uses the
// row's norm.
std::vector<double> pair_magnitudes(const std::vector<double>& values) {
  std::vector<double> magnitudes(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    magnitudes[i] = std::hypot(values[i], values[i ^ 1U]) * std::sqrt(2.0);
  }
  return magnitudes;
}

class QueryNormRopeCase : public Case {
 public:
  QueryNormRopeCase(const Shape& s, const CaseOptions& o)
      : size_(product({s["m"], s["heads"], kKvHeadDim})),
        in_(random_bf16(size_ * static_cast<std::size_t>(o.num_sets), o.seed, -3.0F, 3.0F)),
        rope_(s["m"], o.seed + 1),
        out_(size_),
        problem_{.num_tokens = s.as_int("m"),
                 .num_heads = s.as_int("heads"),
                 .rope = rope_.on_device(),
                 .out = out_.data()} {}
  void launch(int set, cudaStream_t stream) override {
    problem_.in = in_.data() + static_cast<std::size_t>(set) * size_;
    FULCRUM_CUDA_CHECK(kernels::query_norm_rope(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    out_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto in = download_prefix(in_, size_);
    const auto positions = rope_.positions.download();
    kernels::QueryNormRopeProblem host = problem_;
    host.in = in.data();
    host.rope = {rope_.host_table.data(), positions.data()};
    const auto reference = kernels::query_norm_rope_reference(host);
    return compare_bf16(out_.download(), reference, pair_magnitudes(reference), kBf16Output, "out");
  }

 private:
  std::size_t size_;
  DeviceBuffer<std::uint16_t> in_;
  Rope rope_;
  DeviceBuffer<std::uint16_t> out_;
  kernels::QueryNormRopeProblem problem_;
};

class InverseRopeCase : public Case {
 public:
  InverseRopeCase(const Shape& s, const CaseOptions& o)
      : size_(product({s["m"], s["heads"], kKvHeadDim})),
        heads_(random_bf16(size_ * static_cast<std::size_t>(o.num_sets), o.seed)),
        rope_(s["m"], o.seed + 1),
        problem_{.num_tokens = s.as_int("m"),
                 .num_heads = s.as_int("heads"),
                 .rope = rope_.on_device()} {}
  void launch(int set, cudaStream_t stream) override {
    problem_.heads = heads_.data() + static_cast<std::size_t>(set) * size_;
    FULCRUM_CUDA_CHECK(kernels::inverse_rope(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    auto before = download_prefix(heads_, size_);
    const auto positions = rope_.positions.download();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    kernels::InverseRopeProblem host = problem_;
    host.heads = before.data();
    host.rope = {rope_.host_table.data(), positions.data()};
    const auto reference = kernels::inverse_rope_reference(host);
    return compare_bf16(download_prefix(heads_, size_), reference, pair_magnitudes(reference),
                        kBf16Output, "heads");
  }

 private:
  std::size_t size_;
  DeviceBuffer<std::uint16_t> heads_;
  Rope rope_;
  kernels::InverseRopeProblem problem_;
};

class KvStoreCase : public Case {
 public:
  static constexpr int kRowsPerPageLog2 = 6;

  KvStoreCase(const Shape& s, const CaseOptions& o)
      : num_tokens_(s.as_int("m")),
        size_(product({s["m"], kKvHeadDim})),
        in_(random_bf16(size_ * static_cast<std::size_t>(o.num_sets), o.seed, -3.0F, 3.0F)),
        weight_(random_bf16(kKvHeadDim, o.seed + 1, 0.5F, 1.5F)),
        rope_(s["m"], o.seed + 2),
        // Each token writes a row of its own request's window.
        rows_(distinct_values(num_tokens_, num_tokens_ * 128, o.seed + 3)),
        pool_(product({num_tokens_ * 128 / 64, kernels::kv_page_stride_bytes(kRowsPerPageLog2)})) {
    pool_.zero();
    problem_ = {.num_tokens = num_tokens_,
                .weight = weight_.data(),
                .rope = rope_.on_device(),
                .rows = rows_.data(),
                .pool = pool_at(pool_.data())};
  }
  void launch(int set, cudaStream_t stream) override {
    problem_.in = in_.data() + static_cast<std::size_t>(set) * size_;
    FULCRUM_CUDA_CHECK(kernels::kv_store(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    pool_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto in = download_prefix(in_, size_);
    const auto weight = weight_.download();
    const auto positions = rope_.positions.download();
    const auto rows = rows_.download();
    auto pool = pool_.download();
    kernels::KvStoreProblem host = problem_;
    host.in = in.data();
    host.weight = weight.data();
    host.rope = {rope_.host_table.data(), positions.data()};
    return compare_kv_rows(kernels::kv_store_reference(host), rows, pool_at(pool.data()));
  }

 private:
  static KvPool pool_at(std::uint8_t* bytes) {
    return {.pages = bytes,
            .rows_per_page_log2 = kRowsPerPageLog2,
            .page_stride_bytes = kernels::kv_page_stride_bytes(kRowsPerPageLog2)};
  }

  int num_tokens_;
  std::size_t size_;
  DeviceBuffer<std::uint16_t> in_;
  DeviceBuffer<std::uint16_t> weight_;
  Rope rope_;
  DeviceBuffer<std::int32_t> rows_;
  DeviceBuffer<std::uint8_t> pool_;
  kernels::KvStoreProblem problem_;
};

Dimension heads_dimension() { return dimension("heads", "heads in memory", 64, 1, 128); }

}  // namespace

Verification compare_kv_rows(const std::vector<double>& reference,
                             const std::vector<std::int32_t>& rows, const KvPool& pool) {
  std::vector<float> stored;
  std::vector<double> bounds;
  for (std::size_t token = 0; token < rows.size(); ++token) {
    const auto values = kernels::decode_kv_row(pool, rows[token]);
    for (int d = 0; d < kKvHeadDim; ++d) {
      stored.push_back(static_cast<float>(values[static_cast<std::size_t>(d)]));
      double largest = 0.0;
      if (d < kernels::kKvFp8Values) {
        const int first = d / kernels::kKvScaleGroup * kernels::kKvScaleGroup;
        for (int i = first; i < first + kernels::kKvScaleGroup; ++i) {
          largest = std::max(
              largest, std::fabs(reference[token * kKvHeadDim + static_cast<std::size_t>(i)]));
        }
      }
      bounds.push_back(kernels::kv_row_rounding_bound(
          d, reference[token * kKvHeadDim + static_cast<std::size_t>(d)], largest));
    }
  }
  // Besides the rounding: a rotation cancels terms of up to about 10, whose binary32 ulp is 1e-6.
  return compare(stored, reference, bounds, {.relative = 0, .of_magnitude = 1, .absolute = 4e-6},
                 "row");
}

std::vector<KernelEntry> rotary_entries() {
  std::vector<KernelEntry> entries;
  entries.push_back(
      {.name = "query_norm_rope",
       .family = "elementwise",
       .summary = "per-head RMSNorm over 512 and rotary position of the queries",
       .dimensions = {token_dimension(), heads_dimension()},
       .claim =
           [](const Shape& s) {
             return kernels::query_norm_rope_claim(s.as_int("m"), s.as_int("heads"));
           },
       .rotating_bytes =
           [](const Shape& s) {
             return 2.0 * kKvHeadDim * static_cast<double>(s["m"] * s["heads"]);
           },
       .unsupported = any_device,
       .make = make_case<QueryNormRopeCase>,
       .verify_shapes = "m=1;m=5,heads=16;m=3,heads=7",
       .calibration_shapes = token_shapes({1, 16, 64, 512}, ",heads=16") + ";m=4096"});
  entries.push_back({.name = "inverse_rope",
                     .family = "elementwise",
                     .summary = "conjugate rotary position of the attention outputs, in place",
                     .dimensions = {token_dimension(), heads_dimension()},
                     .claim =
                         [](const Shape& s) {
                           return kernels::inverse_rope_claim(s.as_int("m"), s.as_int("heads"));
                         },
                     .rotating_bytes =
                         [](const Shape& s) {
                           return 2.0 * kernels::kKvRopeValues *
                                  static_cast<double>(s["m"] * s["heads"]);
                         },
                     .unsupported = any_device,
                     .make = make_case<InverseRopeCase>,
                     .verify_shapes = "m=1;m=5,heads=16;m=3,heads=7",
                     .calibration_shapes = token_shapes({1, 16, 64}, ",heads=16")});
  entries.push_back(
      {.name = "kv_store",
       .family = "elementwise",
       .summary = "norm, rotary position, quantisation and store of one 584-byte row per token",
       .dimensions = {token_dimension()},
       .claim = [](const Shape& s) { return kernels::kv_store_claim(s.as_int("m")); },
       .rotating_bytes =
           [](const Shape& s) { return 2.0 * kKvHeadDim * static_cast<double>(s["m"]); },
       .unsupported = any_device,
       .make = make_case<KvStoreCase>,
       .verify_shapes = "m=1;m=2;m=131",
       .calibration_shapes = token_shapes({1, 16, 64, 1024})});
  return entries;
}

}  // namespace fulcrum::replay
