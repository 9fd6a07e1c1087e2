#include <algorithm>
#include <random>

#include "kernels/router/router_launch.h"
#include "kernels/router/router_reference.h"
#include "replay/case_parts.h"
#include "replay/random_rows.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;

constexpr int kHashVocab = 4096;

class RouterCase : public Case {
 public:
  RouterCase(const Shape& s, const CaseOptions& o)
      : hash_(s["hash"] != 0),
        logits_(random_floats(product({s["m"], s["experts"]}), o.seed, -4.0F, 4.0F)),
        bias_(random_floats(product({s["experts"]}), o.seed + 1, -0.5F, 0.5F)),
        token_ids_(product({s["m"]})),
        experts_(product({s["m"], s["top_k"]})),
        weights_(experts_.size()) {
    fill_int(token_ids_.data(), s["m"], 0, kHashVocab - 1, o.seed + 2, nullptr);
    std::vector<std::int64_t> table;
    for (int row = 0; row < kHashVocab; ++row) {
      const auto chosen = distinct_values(s.as_int("top_k"), s.as_int("experts"),
                                          o.seed + static_cast<std::uint64_t>(row));
      table.insert(table.end(), chosen.begin(), chosen.end());
    }
    table_ = DeviceBuffer<std::int64_t>(table);
    problem_ = {.num_tokens = s.as_int("m"),
                .num_experts = s.as_int("experts"),
                .top_k = s.as_int("top_k"),
                .logits = logits_.data(),
                .bias = hash_ ? nullptr : bias_.data(),
                .token_ids = token_ids_.data(),
                .expert_of_token = table_.data(),
                .experts = experts_.data(),
                .weights = weights_.data()};
  }
  void launch(int, cudaStream_t stream) override {
    FULCRUM_CUDA_CHECK(kernels::route(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    experts_.poison();
    weights_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto logits = logits_.download();
    const auto bias = bias_.download();
    const auto token_ids = token_ids_.download();
    const auto table = table_.download();
    kernels::RouterProblem host = problem_;
    host.logits = logits.data();
    host.bias = hash_ ? nullptr : bias.data();
    host.token_ids = token_ids.data();
    host.expert_of_token = table.data();
    kernels::RouterReference reference = kernels::router_reference(host);
    auto experts = experts_.download();
    auto weights = weights_.download();
    // Where scores are closer than their binary32 rounding the order is open: such a token is
    // compared with itself, which still catches unwritten outputs of every other token.
    constexpr double kOpenGap = 4e-6;
    const auto top_k = static_cast<std::size_t>(problem_.top_k);
    for (std::size_t token = 0; token < reference.gaps.size(); ++token) {
      if (reference.gaps[token] > kOpenGap) continue;
      for (std::size_t i = token * top_k; i < (token + 1) * top_k; ++i) {
        reference.experts[i] = experts[i];
        reference.weights[i] = weights[i];
      }
    }
    // Softplus, root, sum of six and division in binary32: some ten roundings of 2^-24.
    return merge(compare_exact(experts, reference.experts, "experts"),
                 compare(weights, reference.weights, {}, {.relative = 0x1p-19}, "weights"));
  }

 private:
  bool hash_;
  DeviceBuffer<float> logits_;
  DeviceBuffer<float> bias_;
  DeviceBuffer<std::int32_t> token_ids_;
  DeviceBuffer<std::int64_t> table_;
  DeviceBuffer<std::int32_t> experts_;
  DeviceBuffer<float> weights_;
  kernels::RouterProblem problem_;
};

}  // namespace

std::vector<KernelEntry> router_entries() {
  return {
      {.name = "router",
       .family = "elementwise",
       .summary = "sqrt-softplus scores, biased top-k or hash lookup, renormalised weights",
       .dimensions = {token_dimension(), dimension("experts", "routed experts", 256, 128, 512, 128),
                      dimension("top_k", "experts per token", 6, 1, 8),
                      dimension("hash", "1: expert ids from the token's table row", 0, 0, 1)},
       .claim =
           [](const Shape& s) {
             return kernels::router_claim(s.as_int("m"), s.as_int("experts"), s.as_int("top_k"),
                                          s["hash"] != 0);
           },
       .rotating_bytes =
           [](const Shape& s) { return 4.0 * static_cast<double>(s["m"] * s["experts"]); },
       .unsupported = any_device,
       .make = make_case<RouterCase>,
       .verify_shapes =
           "m=1;m=5,experts=384;m=7,experts=128,top_k=3;m=64,experts=512,top_k=8;m=1,hash=1;"
           "m=37,hash=1",
       .calibration_shapes =
           token_shapes({1, 16, 64, 512}) + ";" + token_shapes({1, 64}, ",hash=1")}};
}

}  // namespace fulcrum::replay
