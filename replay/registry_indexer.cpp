#include <algorithm>
#include <cmath>

#include "kernels/common/formats.h"
#include "kernels/indexer/indexer_launch.h"
#include "kernels/indexer/indexer_reference.h"
#include "replay/case_parts.h"
#include "replay/random_rows.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;
using kernels::IndexPool;
using kernels::kIndexDim;
using kernels::kIndexHeads;
using kernels::kIndexPageRows;

std::int64_t rounded_to_pages(std::int64_t keys) {
  return (keys + kIndexPageRows - 1) / kIndexPageRows * kIndexPageRows;
}

// Every third token one key short of full, when ragged; at least one key.
std::vector<std::int32_t> key_counts(const Shape& s) {
  std::vector<std::int32_t> counts;
  for (std::int64_t t = 0; t < s["m"]; ++t) {
    const std::int64_t removed = s["ragged"] != 0 ? (t % 3) * s["keys"] / 3 + t % 2 : 0;
    counts.push_back(static_cast<std::int32_t>(std::max<std::int64_t>(1, s["keys"] - removed)));
  }
  return counts;
}

template <bool kSm90>
class IndexLogitsCase : public Case {
 public:
  IndexLogitsCase(const Shape& s, const CaseOptions& o)
      : num_tokens_(s.as_int("m")),
        max_keys_(static_cast<int>(rounded_to_pages(s["keys"]))),
        pool_bytes_(product({num_tokens_, max_keys_, kernels::kIndexKeyBytes})),
        pools_(pool_bytes_ * static_cast<std::size_t>(o.num_sets)),
        query_(product({num_tokens_, kIndexHeads, kIndexDim})),
        weights_(random_floats(product({num_tokens_, kIndexHeads}), o.seed + 1, -0.1F, 0.3F)),
        // The pages of all tokens, shuffled.
        page_table_(distinct_values(num_tokens_ * max_keys_ / kIndexPageRows,
                                    num_tokens_ * max_keys_ / kIndexPageRows, o.seed + 2)),
        counts_(key_counts(s)),
        logits_(product({num_tokens_, max_keys_})) {
    fill_e4m3(query_.data(), length(query_), o.seed, nullptr);
    for (int set = 0; set < o.num_sets; ++set) {
      fill_index_rows(pool_of(pools_.data(), set), std::int64_t{num_tokens_} * max_keys_,
                      o.seed + 100 + static_cast<std::uint64_t>(set), nullptr);
    }
    problem_ = {.num_tokens = num_tokens_,
                .max_keys = max_keys_,
                .query = query_.data(),
                .weights = weights_.data(),
                .pool = {},
                .page_table = page_table_.data(),
                .key_counts = counts_.data(),
                .logits = logits_.data()};
  }
  void launch(int set, cudaStream_t stream) override {
    problem_.pool = pool_of(pools_.data(), set);
    FULCRUM_CUDA_CHECK(kSm90 ? kernels::index_logits_sm90(problem_, stream)
                             : kernels::index_logits(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    logits_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    auto pool = download_prefix(pools_, pool_bytes_);
    const auto query = query_.download();
    const auto weights = weights_.download();
    const auto page_table = page_table_.download();
    const auto counts = counts_.download();
    kernels::IndexLogitsProblem host = problem_;
    host.query = query.data();
    host.weights = weights.data();
    host.pool = pool_of(pool.data(), 0);
    host.page_table = page_table.data();
    host.key_counts = counts.data();
    const kernels::IndexLogitsReference reference = kernels::index_logits_reference(host);
    // Positions past a token's keys must stay as they were: poisoned.
    auto logits = logits_.download();
    for (std::size_t t = 0; t < counts.size(); ++t) {
      const std::size_t row = t * static_cast<std::size_t>(max_keys_);
      for (auto j = static_cast<std::size_t>(counts[t]); j < static_cast<std::size_t>(max_keys_);
           ++j) {
        if (std::isnan(logits[row + j])) logits[row + j] = 0.0F;
      }
    }
    // FP8 wgmma keeps about 14 fractional bits of a sum (DeepSeek-V3 technical report,
    // section 3.3.2).
    const Tolerance tolerance =
        kSm90 ? Tolerance{kFloatOutput.relative, 0x1p-11, 1e-30} : kFloatOutput;
    return compare(logits, reference.logits, reference.magnitude, tolerance, "logits");
  }

 private:
  IndexPool pool_of(std::uint8_t* bytes, int set) const {
    return {.pages = bytes + static_cast<std::size_t>(set) * pool_bytes_};
  }

  int num_tokens_;
  int max_keys_;
  std::size_t pool_bytes_;
  DeviceBuffer<std::uint8_t> pools_;
  DeviceBuffer<std::uint8_t> query_;
  DeviceBuffer<float> weights_;
  DeviceBuffer<std::int32_t> page_table_;
  DeviceBuffer<std::int32_t> counts_;
  DeviceBuffer<float> logits_;
  kernels::IndexLogitsProblem problem_;
};

Verification one_verdict(std::int64_t num_elements, const std::optional<std::string>& violation) {
  Verification verdict;
  verdict.num_elements = num_elements;
  if (violation) {
    verdict.num_failed = 1;
    verdict.worst = *violation;
  }
  return verdict;
}

class TopKCase : public Case {
 public:
  TopKCase(const Shape& s, const CaseOptions& o)
      : size_(product({s["m"], s["keys"]})),
        logits_(size_ * static_cast<std::size_t>(o.num_sets)),
        counts_(key_counts(s)),
        indices_(product({s["m"], s["top_k"]})),
        problem_{.num_tokens = s.as_int("m"),
                 .max_keys = s.as_int("keys"),
                 .top_k = s.as_int("top_k"),
                 .key_counts = counts_.data(),
                 .indices = indices_.data()} {
    if (s["ties"] != 0) {
      // Few distinct values: the k-th largest has many equals, more than the kernel keeps in shared
      // memory.
      std::vector<float> logits(logits_.size());
      for (std::size_t i = 0; i < logits.size(); ++i)
        logits[i] = static_cast<float>((i * 7919) % 5) - 2.0F;
      logits_.upload(logits);
    } else {
      fill_float(logits_.data(), length(logits_), -3.0F, 5.0F, o.seed, nullptr);
    }
  }
  void launch(int set, cudaStream_t stream) override {
    problem_.logits = logits_.data() + static_cast<std::size_t>(set) * size_;
    FULCRUM_CUDA_CHECK(kernels::top_k(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    indices_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto logits = download_prefix(logits_, size_);
    const auto counts = counts_.download();
    auto indices = indices_.download();
    // Poison reads as -1, which the contract allows only where keys run out; there it must have
    // been written too, which a second launch over another pattern shows.
    indices_.zero();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto again = indices_.download();
    kernels::TopKProblem host = problem_;
    host.logits = logits.data();
    host.key_counts = counts.data();
    auto violation = kernels::top_k_violation(host, indices.data());
    if (!violation) violation = kernels::top_k_violation(host, again.data());
    return one_verdict(length(indices_), violation);
  }

 private:
  std::size_t size_;
  DeviceBuffer<float> logits_;
  DeviceBuffer<std::int32_t> counts_;
  DeviceBuffer<std::int32_t> indices_;
  kernels::TopKProblem problem_;
};

class IndexQueryCase : public Case {
 public:
  static constexpr int kPositions = 4096;

  IndexQueryCase(const Shape& s, const CaseOptions& o)
      : size_(product({s["m"], kIndexHeads, kIndexDim})),
        in_(random_bf16(size_ * static_cast<std::size_t>(o.num_sets), o.seed, -2.0F, 2.0F)),
        in_weights_(random_floats(product({s["m"], kIndexHeads}), o.seed + 1)),
        table_(rotary_table(kPositions, 160000.0)),
        device_table_(table_),
        positions_(product({s["m"]})),
        query_(size_),
        out_weights_(in_weights_.size()) {
    fill_int(positions_.data(), s["m"], 0, kPositions - 1, o.seed + 2, nullptr);
    problem_ = {.num_tokens = s.as_int("m"),
                .factor = 0.011048543456039806F,  // 1 / sqrt(64 * 128)
                .in_weights = in_weights_.data(),
                .rope = {device_table_.data(), positions_.data()},
                .query = query_.data(),
                .out_weights = out_weights_.data()};
  }
  void launch(int set, cudaStream_t stream) override {
    problem_.in = in_.data() + static_cast<std::size_t>(set) * size_;
    FULCRUM_CUDA_CHECK(kernels::index_query(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    query_.poison();
    out_weights_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto in = download_prefix(in_, size_);
    const auto in_weights = in_weights_.download();
    const auto positions = positions_.download();
    const auto codes = query_.download();
    kernels::IndexQueryProblem host = problem_;
    host.in = in.data();
    host.rope = {table_.data(), positions.data()};
    const std::vector<double> reference = kernels::index_query_reference(host);
    std::vector<float> values(size_);
    std::vector<double> bounds(size_);
    std::vector<double> weights;
    for (std::size_t head = 0; head < size_ / kIndexDim; ++head) {
      double largest = 1e-4;
      for (std::size_t d = 0; d < kIndexDim; ++d) {
        largest = std::max(largest, std::fabs(reference[head * kIndexDim + d]));
      }
      const double scale = largest / 448.0;
      weights.push_back(in_weights[head] * scale * problem_.factor);
      for (std::size_t d = 0; d < kIndexDim; ++d) {
        const std::size_t i = head * kIndexDim + d;
        values[i] = static_cast<float>(kernels::decode_e4m3(codes[i]) * scale);
        // Half an ulp of E4M3, and the binary32 error of the 128-term sum.
        bounds[i] = std::max(0x1p-4 * std::fabs(reference[i]), 0x1p-10 * scale) + 1e-6 * largest;
      }
    }
    return merge(compare(values, reference, bounds, {.relative = 0, .of_magnitude = 1}, "query"),
                 compare(out_weights_.download(), weights, {},
                         {.relative = 4e-6, .of_magnitude = 0}, "weights"));
  }

 private:
  std::size_t size_;
  DeviceBuffer<std::uint16_t> in_;
  DeviceBuffer<float> in_weights_;
  std::vector<float> table_;
  DeviceBuffer<float> device_table_;
  DeviceBuffer<std::int32_t> positions_;
  DeviceBuffer<std::uint8_t> query_;
  DeviceBuffer<float> out_weights_;
  kernels::IndexQueryProblem problem_;
};

Dimension keys_dimension() {
  return dimension("keys", "compressed keys per token", 2048, 1, 1 << 18);
}
Dimension ragged_dimension() {
  return dimension("ragged", "1: some tokens have fewer keys", 0, 0, 1);
}

}  // namespace

std::vector<KernelEntry> indexer_entries() {
  KernelEntry logits{
      .name = "index_logits",
      .family = "indexer",
      .summary =
          "64 heads x 128 E4M3 scores of every compressed key, ReLU, weighted sum over heads",
      .dimensions = {token_dimension(1024), keys_dimension(), ragged_dimension()},
      .claim =
          [](const Shape& s) {
            return kernels::index_logits_claim(s.as_int("m"), static_cast<double>(s["keys"]));
          },
      .rotating_bytes =
          [](const Shape& s) {
            return static_cast<double>(s["m"] * s["keys"]) * kernels::kIndexKeyBytes;
          },
      .unsupported = any_device,
      .make = make_case<IndexLogitsCase<false>>,
      .verify_shapes =
          "m=1,keys=1;m=3,keys=64;m=5,keys=1000,ragged=1;m=1,keys=9000;m=40,keys=300,ragged=1",
      .calibration_shapes = token_shapes({1, 4, 16, 64}, ",keys=256") + ";" +
                            token_shapes({1, 4, 16, 64}) + ";" +
                            token_shapes({1, 16, 64}, ",keys=32768")};
  KernelEntry logits_sm90 = logits;
  logits_sm90.name = "index_logits_sm90";
  logits_sm90.summary = "the same with Hopper's FP8 warpgroup instructions";
  logits_sm90.unsupported = [](const Shape&, const DeviceTraits& d) -> std::optional<std::string> {
    if (d.compute_capability != 90) return "wgmma exists on sm_90a only";
    return std::nullopt;
  };
  logits_sm90.make = make_case<IndexLogitsCase<true>>;
  KernelEntry select{
      .name = "top_k",
      .family = "indexer",
      .summary = "the 512 largest logits of every token, radix select",
      .dimensions = {token_dimension(1024), keys_dimension(),
                     dimension("top_k", "kept keys", 512, 1, 2048), ragged_dimension(),
                     dimension("ties", "1: five distinct values", 0, 0, 1)},
      .claim =
          [](const Shape& s) {
            return kernels::top_k_claim(s.as_int("m"), static_cast<double>(s["keys"]),
                                        s.as_int("top_k"));
          },
      .rotating_bytes =
          [](const Shape& s) { return 4.0 * static_cast<double>(s["m"] * s["keys"]); },
      .unsupported = any_device,
      .make = make_case<TopKCase>,
      .verify_shapes =
          "m=2,keys=100;m=3,keys=512;m=3,keys=513;m=7,keys=5000,ragged=1;m=2,keys=40000;"
          "m=2,keys=40000,ties=1;m=2,keys=2000,ties=1;m=3,keys=9000,top_k=1;"
          "m=3,keys=9000,top_k=2048",
      .calibration_shapes = token_shapes({1, 16, 64}, ",keys=256") + ";" +
                            token_shapes({1, 16, 64}) + ";" +
                            token_shapes({1, 16, 64}, ",keys=32768")};
  KernelEntry query{
      .name = "index_query",
      .family = "indexer",
      .summary = "rotary position, Hadamard rotation and E4M3 of the indexer's queries",
      .dimensions = {token_dimension()},
      .claim = [](const Shape& s) { return kernels::index_query_claim(s.as_int("m")); },
      .rotating_bytes =
          [](const Shape& s) {
            return 2.0 * kIndexHeads * kIndexDim * static_cast<double>(s["m"]);
          },
      .unsupported = any_device,
      .make = make_case<IndexQueryCase>,
      .verify_shapes = "m=1;m=7;m=64",
      .calibration_shapes = token_shapes({1, 16, 64})};
  return {logits, logits_sm90, select, query};
}

}  // namespace fulcrum::replay
