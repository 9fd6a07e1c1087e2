#include <algorithm>
#include <limits>

#include "kernels/head/head_launch.h"
#include "kernels/head/head_reference.h"
#include "replay/case_parts.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;

class HeadGemvCase : public Case {
 public:
  HeadGemvCase(const Shape& s, const CaseOptions& o)
      : weight_size_(product({s["n"], s["k"]})),
        weight_(random_bf16(weight_size_ * static_cast<std::size_t>(o.num_sets), o.seed)),
        x_(random_bf16(product({s["m"], s["k"]}), o.seed + 1)),
        out_(product({s["m"], s["n"]})),
        problem_{.num_tokens = s.as_int("m"),
                 .num_rows = s.as_int("n"),
                 .depth = s.as_int("k"),
                 .x = x_.data(),
                 .out = out_.data()} {}
  void launch(int set, cudaStream_t stream) override {
    problem_.weight = weight_.data() + static_cast<std::size_t>(set) * weight_size_;
    FULCRUM_CUDA_CHECK(kernels::head_gemv(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    out_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto weight = download_prefix(weight_, weight_size_);
    const auto x = x_.download();
    kernels::HeadGemvProblem host = problem_;
    host.weight = weight.data();
    host.x = x.data();
    const kernels::HeadGemvReference reference = kernels::head_gemv_reference(host);
    return compare(out_.download(), reference.out, reference.magnitude, kFloatOutput, "out");
  }

 private:
  std::size_t weight_size_;
  DeviceBuffer<std::uint16_t> weight_;
  DeviceBuffer<std::uint16_t> x_;
  DeviceBuffer<float> out_;
  kernels::HeadGemvProblem problem_;
};

class SamplingCase : public Case {
 public:
  SamplingCase(const Shape& s, const CaseOptions& o)
      : size_(product({s["m"], s["vocab"]})),
        logits_(random_floats(size_ * static_cast<std::size_t>(o.num_sets), o.seed, -8.0F, 8.0F)),
        tokens_(product({s["m"]})),
        workspace_(static_cast<std::size_t>(
            kernels::sampling_workspace_bytes(s.as_int("m"), s.as_int("vocab")))) {
    std::vector<float> temperatures;
    for (std::int64_t t = 0; t < s["m"]; ++t) {
      temperatures.push_back(s["greedy"] != 0 ? 0.0F : 0.5F + 0.25F * static_cast<float>(t % 5));
    }
    temperatures_ = DeviceBuffer<float>(temperatures);
    problem_ = {.num_tokens = s.as_int("m"),
                .vocab = s.as_int("vocab"),
                .temperatures = temperatures_.data(),
                .seed = o.seed,
                .step = 3,
                .tokens = tokens_.data(),
                .workspace = workspace_.data()};
  }
  void launch(int set, cudaStream_t stream) override {
    problem_.logits = logits_.data() + static_cast<std::size_t>(set) * size_;
    FULCRUM_CUDA_CHECK(kernels::sample(problem_, stream));
  }
  // The token must be the argmax of the reference scores, or one whose score is as large up to the
  // binary32 rounding of score and Gumbel draw.
  Verification verify(cudaStream_t stream) override {
    tokens_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto logits = download_prefix(logits_, size_);
    const auto temperatures = temperatures_.download();
    const auto tokens = tokens_.download();
    kernels::SamplingProblem host = problem_;
    host.logits = logits.data();
    host.temperatures = temperatures.data();
    const std::vector<double> scores = kernels::sampling_scores_reference(host);
    std::vector<float> chosen;
    std::vector<double> best;
    const auto vocab = static_cast<std::size_t>(problem_.vocab);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const auto row = scores.begin() + static_cast<std::ptrdiff_t>(t * vocab);
      const bool valid = tokens[t] >= 0 && tokens[t] < problem_.vocab;
      chosen.push_back(valid ? static_cast<float>(row[tokens[t]])
                             : std::numeric_limits<float>::quiet_NaN());
      best.push_back(*std::max_element(row, row + problem_.vocab));
    }
    return compare(chosen, best, {}, {.relative = 0x1p-19, .of_magnitude = 0, .absolute = 1e-6},
                   "score of the token");
  }

 private:
  std::size_t size_;
  DeviceBuffer<float> logits_;
  DeviceBuffer<float> temperatures_;
  DeviceBuffer<std::int32_t> tokens_;
  DeviceBuffer<std::uint8_t> workspace_;
  kernels::SamplingProblem problem_;
};

}  // namespace

std::vector<KernelEntry> head_entries() {
  KernelEntry gemv{
      .name = "head_gemv",
      .family = "head",
      .summary = "BF16 matrix x few tokens, FP32 out: head, gate, compressor and indexer weights",
      .dimensions = {token_dimension(512), dimension("n", "matrix rows", 129280, 1, 1 << 18),
                     dimension("k", "depth", 4096, 1024, 1 << 14, 1024)},
      .claim =
          [](const Shape& s) {
            return kernels::head_gemv_claim(s.as_int("m"), s.as_int("n"), s.as_int("k"));
          },
      .rotating_bytes = [](const Shape& s) { return 2.0 * static_cast<double>(s["n"] * s["k"]); },
      .unsupported = any_device,
      .make = make_case<HeadGemvCase>,
      .verify_shapes =
          "m=1,n=256;m=3,n=100,k=1024;m=9,n=512;m=17,n=2048,k=1024;m=33,n=64,k=5120;"
          "m=100,n=48,k=1024;m=1,n=16400,k=1024;m=12,n=16500,k=1024;m=24,n=17000,k=1024;"
          "m=64,n=16385,k=1024;m=130,n=16390,k=1024",
      // Head at TP1 and TP4, gate, CSA and HCA compressors, indexer weights.
      .calibration_shapes =
          token_shapes({1, 8, 16, 64}) + ";" + token_shapes({1, 4, 16, 32, 64, 128}, ",n=32320") +
          ";" + token_shapes({1, 16, 64}, ",n=256") + ";" + token_shapes({1, 16, 64}, ",n=2048") +
          ";" + token_shapes({1, 16, 64}, ",n=64")};
  KernelEntry sampling{
      .name = "sampling",
      .family = "head",
      .summary = "greedy or temperature sampling by the Gumbel trick",
      .dimensions = {token_dimension(1024),
                     dimension("vocab", "logits per token", 129280, 4, 1 << 18, 4),
                     dimension("greedy", "1: argmax", 0, 0, 1)},
      .claim =
          [](const Shape& s) { return kernels::sampling_claim(s.as_int("m"), s.as_int("vocab")); },
      .rotating_bytes =
          [](const Shape& s) { return 4.0 * static_cast<double>(s["m"] * s["vocab"]); },
      .unsupported = any_device,
      .make = make_case<SamplingCase>,
      .verify_shapes = "m=1;m=7,vocab=32320;m=5,vocab=4;m=3,vocab=4100,greedy=1;m=2,greedy=1",
      .calibration_shapes = token_shapes({1, 16, 64}) + ";m=64,greedy=1"};
  return {gemv, sampling};
}

}  // namespace fulcrum::replay
