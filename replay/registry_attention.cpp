#include <algorithm>
#include <stdexcept>

#include "kernels/attention/sparse_mla_launch.h"
#include "kernels/attention/sparse_mla_reference.h"
#include "replay/case_parts.h"
#include "replay/random_rows.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;
using kernels::KvPool;
using kernels::SparseMlaPlan;
using kernels::SparseMlaProblem;
using kernels::SparseMlaShape;

constexpr int kWindow = 128;
constexpr int kRowsPerPageLog2 = 6;

SparseMlaShape mla_shape(const Shape& s) {
  return {.num_tokens = s.as_int("m"),
          .num_heads = s.as_int("heads"),
          .window_width = kWindow,
          .compressed_width = s.as_int("width")};
}

double attended_rows(const Shape& s) { return static_cast<double>(kWindow + s["rows"]); }

std::size_t pool_bytes(std::int64_t num_rows) {
  const std::int64_t pages = (num_rows + (1 << kRowsPerPageLog2) - 1) >> kRowsPerPageLog2;
  return static_cast<std::size_t>(pages * kernels::kv_page_stride_bytes(kRowsPerPageLog2));
}

KvPool pool_at(std::uint8_t* bytes) {
  return {.pages = bytes,
          .rows_per_page_log2 = kRowsPerPageLog2,
          .page_stride_bytes = kernels::kv_page_stride_bytes(kRowsPerPageLog2)};
}

// Row slots of all tokens: `count` distinct rows of each token's own `range` rows, the rest of the
// slots empty. `ragged` takes rows away from some tokens and punches holes, for verification.
struct Slots {
  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> counts;
};
Slots make_slots(int num_tokens, int width, int count, int range, bool ragged, std::uint64_t seed) {
  Slots slots;
  for (int t = 0; t < num_tokens; ++t) {
    const int used = ragged ? count * (t % 4) / 3 : count;
    std::vector<std::int32_t> values =
        distinct_values(used, range, seed + static_cast<std::uint64_t>(t));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = ragged && i % 7 == 3 ? -1 : values[i] + t * range;
    }
    values.resize(static_cast<std::size_t>(width), -1);
    slots.rows.insert(slots.rows.end(), values.begin(), values.end());
    slots.counts.push_back(used);
  }
  return slots;
}

enum class Mla { kRowLoop, kSplitK, kSplitKSm90 };

template <Mla kKind>
class SparseMlaCase : public Case {
 public:
  SparseMlaCase(const Shape& s, const CaseOptions& options)
      : shape_(mla_shape(s)),
        window_bytes_(pool_bytes(s["m"] * kWindow)),
        compressed_bytes_(pool_bytes(s["m"] * std::max<std::int64_t>(1, s["context_rows"]))),
        pools_((window_bytes_ + compressed_bytes_) * static_cast<std::size_t>(options.num_sets)),
        query_(random_bf16(product({s["m"], s["heads"], kernels::kKvHeadDim}), options.seed, -4.0F,
                           4.0F)),
        sink_(random_floats(product({s["heads"]}), options.seed + 1, -2.0F, 4.0F)),
        out_(query_.size()) {
    if (s["rows"] > s["width"] || s["rows"] > s["context_rows"]) {
      throw std::invalid_argument("rows must not exceed width and context_rows");
    }
    const bool ragged = s["ragged"] != 0;
    const int m = s.as_int("m");
    const Slots window = make_slots(m, kWindow, kWindow, kWindow, ragged, options.seed + 2);
    const Slots compressed = make_slots(m, s.as_int("width"), s.as_int("rows"),
                                        s.as_int("context_rows"), ragged, options.seed + 1000);
    window_rows_ = DeviceBuffer<std::int32_t>(window.rows);
    window_counts_ = DeviceBuffer<std::int32_t>(window.counts);
    compressed_rows_ = DeviceBuffer<std::int32_t>(compressed.rows);
    compressed_counts_ = DeviceBuffer<std::int32_t>(compressed.counts);
    for (int set = 0; set < options.num_sets; ++set) {
      const std::uint64_t seed = options.seed + 7919 * static_cast<std::uint64_t>(set + 1);
      fill_kv_rows(pool_at(window_of(set)), s["m"] * kWindow, seed, nullptr);
      fill_kv_rows(pool_at(compressed_of(set)), s["m"] * s["context_rows"], seed + 1, nullptr);
    }
    if constexpr (kSplitK) {
      FULCRUM_CUDA_CHECK(kKind == Mla::kSplitKSm90
                             ? kernels::plan_sparse_mla_sm90_for_device(shape_, &plan_)
                             : kernels::plan_sparse_mla_for_device(shape_, &plan_));
      if (s["tile"] != 0) plan_.heads_per_block = s.as_int("tile");
      if (s["splits"] != 0) plan_.num_splits = s.as_int("splits");
    } else {
      plan_.num_splits = 2;
    }
    workspace_ = DeviceBuffer<float>(
        static_cast<std::size_t>(kernels::sparse_mla_workspace_floats(shape_, plan_.num_splits)));
  }

  void launch(int set, cudaStream_t stream) override {
    const SparseMlaProblem problem{.shape = shape_,
                                   .query = query_.data(),
                                   .window = pool_at(window_of(set)),
                                   .compressed = pool_at(compressed_of(set)),
                                   .window_rows = window_rows_.data(),
                                   .window_counts = window_counts_.data(),
                                   .compressed_rows = compressed_rows_.data(),
                                   .compressed_counts = compressed_counts_.data(),
                                   .sink = sink_.data(),
                                   .softmax_scale = kScale,
                                   .out = out_.data(),
                                   .workspace = workspace_.data()};
    if constexpr (kKind == Mla::kSplitKSm90) {
      FULCRUM_CUDA_CHECK(kernels::sparse_mla_split_k_sm90(problem, plan_, stream));
    } else if constexpr (kKind == Mla::kSplitK) {
      FULCRUM_CUDA_CHECK(kernels::sparse_mla_split_k(problem, plan_, stream));
    } else {
      FULCRUM_CUDA_CHECK(kernels::sparse_mla_row_loop(problem, stream));
    }
  }

  Verification verify(cudaStream_t stream) override {
    out_.poison();
    workspace_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto query = query_.download();
    auto pools = download_prefix(pools_, window_bytes_ + compressed_bytes_);
    const auto window_rows = window_rows_.download();
    const auto window_counts = window_counts_.download();
    const auto compressed_rows = compressed_rows_.download();
    const auto compressed_counts = compressed_counts_.download();
    const auto sink = sink_.download();
    const kernels::SparseMlaReference reference =
        kernels::sparse_mla_reference({.shape = shape_,
                                       .query = query.data(),
                                       .window = pool_at(pools.data()),
                                       .compressed = pool_at(pools.data() + window_bytes_),
                                       .window_rows = window_rows.data(),
                                       .window_counts = window_counts.data(),
                                       .compressed_rows = compressed_rows.data(),
                                       .compressed_counts = compressed_counts.data(),
                                       .sink = sink.data(),
                                       .softmax_scale = kScale});
    // Half an ulp of the BF16 output (2^-8 of it); of what it is summed from, the binary32 error of
    // a score (about 2^-18 of a magnitude of some tens, which the exponential turns into a relative
    // error of the weight) and, where weights are rounded to BF16 for the tensor cores, half an
    // ulp. Either half ulp is reached where one row outweighs the others.
    constexpr double kScoreError = 0x1p-12;
    const Tolerance tolerance{0x1p-8, kSplitK ? 0x1p-8 + kScoreError : kScoreError, 1e-30};
    return compare_bf16(out_.download(), reference.out, reference.magnitude, tolerance, "out");
  }

 private:
  static constexpr bool kSplitK = kKind != Mla::kRowLoop;
  static constexpr float kScale = 0.04419417382415922F;  // 1 / sqrt(512)

  std::uint8_t* window_of(int set) {
    return pools_.data() + static_cast<std::size_t>(set) * (window_bytes_ + compressed_bytes_);
  }
  std::uint8_t* compressed_of(int set) { return window_of(set) + window_bytes_; }

  SparseMlaShape shape_;
  SparseMlaPlan plan_;
  std::size_t window_bytes_;
  std::size_t compressed_bytes_;
  DeviceBuffer<std::uint8_t> pools_;
  DeviceBuffer<std::uint16_t> query_;
  DeviceBuffer<float> sink_;
  DeviceBuffer<std::uint16_t> out_;
  DeviceBuffer<std::int32_t> window_rows_;
  DeviceBuffer<std::int32_t> window_counts_;
  DeviceBuffer<std::int32_t> compressed_rows_;
  DeviceBuffer<std::int32_t> compressed_counts_;
  DeviceBuffer<float> workspace_;
};

std::vector<Dimension> mla_dimensions() {
  return {
      token_dimension(1024),
      dimension("heads", "heads in memory, padding included", 64, 16, 128, 16),
      dimension("rows", "compressed rows attended per token", 512, 0, 8192),
      dimension("width", "compressed row slots per token", 512, 1, 8192),
      dimension("context_rows", "compressed rows of a request to choose from", 2048, 1, 1 << 18),
      dimension("ragged", "1: tokens with fewer rows and holes among the slots", 0, 0, 1)};
}

// A request's compressed rows are far more than those attended, and a set is only as cold as what
// is read of it.
double mla_rotating_bytes(const Shape& s) {
  return static_cast<double>(s["m"]) * attended_rows(s) * kernels::kKvRowBytes;
}

// CSA at 8k (512 of 2048 rows) and HCA (context / 128 rows, slots for 128k) over batch sizes; TP4
// without padding.
std::string mla_calibration_shapes(bool row_loop) {
  const auto tokens = {1, 2, 4, 8, 16, 32, 64, 128};
  std::string shapes = token_shapes(tokens);
  shapes += ";" + token_shapes({1, 16, 64}, ",rows=64,width=1024,context_rows=64");
  shapes += ";" + token_shapes({16}, ",context_rows=32768");
  if (!row_loop) shapes += ";" + token_shapes({1, 16, 64}, ",heads=16");
  shapes += ";" + token_shapes({16}, ",rows=1024,width=1024,context_rows=1024");
  if (row_loop) shapes += ";" + token_shapes({16}, ",rows=128,context_rows=128");
  return shapes;
}

}  // namespace

std::vector<KernelEntry> attention_entries() {
  const char* common_shapes =
      "m=1,rows=512;m=3,rows=100,width=128,context_rows=100;m=5,heads=16,ragged=1,rows=500;"
      "m=4,heads=32,ragged=1,rows=64,width=64,context_rows=64;m=2,heads=128,rows=0,context_rows=1;"
      "m=8,ragged=1,rows=31,width=33,context_rows=500;m=17,rows=512,context_rows=1024";
  KernelEntry row_loop{
      .name = "sparse_mla_row_loop",
      .family = "attention",
      .summary = "sparse MLA decode, CUDA cores, a block per token and head over padded slots",
      .dimensions = mla_dimensions(),
      .claim =
          [](const Shape& s) {
            return kernels::sparse_mla_row_loop_claim(mla_shape(s), attended_rows(s));
          },
      .rotating_bytes = mla_rotating_bytes,
      .unsupported = any_device,
      .make = make_case<SparseMlaCase<Mla::kRowLoop>>,
      .verify_shapes = common_shapes,
      .calibration_shapes = mla_calibration_shapes(true)};
  KernelEntry split_k = row_loop;
  split_k.name = "sparse_mla_split_k";
  split_k.summary = "sparse MLA decode, tensor cores, heads share the rows, split over rows";
  split_k.dimensions.push_back(dimension("tile", "heads per block, 0 = planned", 0, 0, 64, 16));
  split_k.dimensions.push_back(dimension("splits", "parts of the rows, 0 = planned", 0, 0, 64));
  split_k.claim = [](const Shape& s) {
    return kernels::sparse_mla_claim(mla_shape(s), attended_rows(s));
  };
  split_k.unsupported = [](const Shape& s, const DeviceTraits& d) -> std::optional<std::string> {
    const int heads = s["tile"] == 0 ? 16 : s.as_int("tile");
    if ((heads != 16 && heads != 64) || s["heads"] % heads != 0) {
      return "tile must be 16 or 64 and divide heads";
    }
    if (kernels::sparse_mla_split_k_shared_bytes(heads) > d.shared_memory_per_block_bytes) {
      return "the head tile needs more shared memory than a block of this device has";
    }
    return std::nullopt;
  };
  split_k.make = make_case<SparseMlaCase<Mla::kSplitK>>;
  split_k.verify_shapes =
      std::string(common_shapes) +
      ";m=3,tile=16,splits=1,ragged=1;m=3,tile=64,splits=3,ragged=1;"
      "m=3,tile=64,splits=7,ragged=1;m=2,tile=64,splits=20;m=2,tile=16,splits=9";
  split_k.calibration_shapes = mla_calibration_shapes(false);
  KernelEntry sm90 = split_k;
  sm90.name = "sparse_mla_split_k_sm90";
  sm90.summary = "the same with Hopper's warpgroup products";
  sm90.unsupported = [](const Shape& s, const DeviceTraits& d) -> std::optional<std::string> {
    if (d.compute_capability != 90) return "warpgroup products need compute capability 9.0";
    const int heads = s["tile"] == 0 ? 16 : s.as_int("tile");
    if ((heads != 16 && heads != 64) || s["heads"] % heads != 0) {
      return "tile must be 16 or 64 and divide heads";
    }
    if (s["splits"] > kernels::kSparseMlaSm90MaxSplits) return "a cluster has at most 8 blocks";
    return std::nullopt;
  };
  sm90.verify_shapes =
      std::string(common_shapes) +
      ";m=3,tile=16,splits=1,ragged=1;m=3,tile=64,splits=3,ragged=1;m=3,tile=64,splits=7,ragged=1;"
      "m=2,tile=64,splits=8;m=2,tile=16,splits=5;m=1,tile=16,splits=2,rows=10,context_rows=10";
  sm90.make = make_case<SparseMlaCase<Mla::kSplitKSm90>>;
  return {row_loop, split_k, sm90};
}

}  // namespace fulcrum::replay
