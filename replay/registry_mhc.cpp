#include "kernels/mhc/mhc_launch.h"
#include "kernels/mhc/mhc_reference.h"
#include "replay/case_parts.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;
using kernels::kMhcMixes;
using kernels::kMhcStreams;

class MhcPreCase : public Case {
 public:
  MhcPreCase(const Shape& s, const CaseOptions& o)
      : columns_(product({kMhcStreams, s["hidden"]})),
        residual_(random_bf16(product({s["m"]}) * columns_, o.seed, -2.0F, 2.0F)),
        // Mixes of order one: 24 sums of `columns` products over the root mean square.
        fn_(random_floats(kMhcMixes * columns_ * static_cast<std::size_t>(o.num_sets), o.seed + 1,
                          -0.02F, 0.02F)),
        scale_(random_floats(3, o.seed + 2, 0.5F, 1.5F)),
        base_(random_floats(kMhcMixes, o.seed + 3)),
        norm_weight_(random_bf16(product({s["hidden"]}), o.seed + 4, 0.5F, 1.5F)),
        out_(product({s["m"], s["hidden"]})),
        post_(product({s["m"], kMhcStreams})),
        comb_(product({s["m"], kMhcStreams, kMhcStreams})),
        workspace_(static_cast<std::size_t>(
            kernels::mhc_pre_workspace_floats(s.as_int("m"), s.as_int("hidden")))),
        problem_{.num_tokens = s.as_int("m"),
                 .hidden = s.as_int("hidden"),
                 .num_iterations = s.as_int("iterations"),
                 .residual = residual_.data(),
                 .scale = scale_.data(),
                 .base = base_.data(),
                 .norm_weight = norm_weight_.data(),
                 .out = out_.data(),
                 .post = post_.data(),
                 .comb = comb_.data(),
                 .workspace = workspace_.data()} {}
  void launch(int set, cudaStream_t stream) override {
    problem_.fn = fn_.data() + static_cast<std::size_t>(set) * kMhcMixes * columns_;
    FULCRUM_CUDA_CHECK(kernels::mhc_pre(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    out_.poison();
    post_.poison();
    comb_.poison();
    workspace_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto residual = residual_.download();
    const auto fn = download_prefix(fn_, kMhcMixes * columns_);
    const auto scale = scale_.download();
    const auto base = base_.download();
    const auto norm_weight = norm_weight_.download();
    kernels::MhcPreProblem host = problem_;
    host.residual = residual.data();
    host.fn = fn.data();
    host.scale = scale.data();
    host.base = base.data();
    host.norm_weight = norm_weight.data();
    const kernels::MhcPreReference reference = kernels::mhc_pre_reference(host);
    // A mix sums 16384 products with 21-bit factors; sigmoid, softmax and Sinkhorn pass its error
    // on (an exponential turns 1e-5 of a mix of order one into 1e-5 of its value).
    const Tolerance of_mix{.relative = 4e-5, .of_magnitude = 0, .absolute = 1e-8};
    const Tolerance of_out{.relative = 0x1p-8, .of_magnitude = 4e-5, .absolute = 1e-30};
    return merge(
        compare_bf16(out_.download(), reference.out, reference.out_magnitude, of_out, "out"),
        merge(compare(post_.download(), reference.post, {}, of_mix, "post"),
              compare(comb_.download(), reference.comb, {}, of_mix, "comb")));
  }

 private:
  std::size_t columns_;
  DeviceBuffer<std::uint16_t> residual_;
  DeviceBuffer<float> fn_;
  DeviceBuffer<float> scale_;
  DeviceBuffer<float> base_;
  DeviceBuffer<std::uint16_t> norm_weight_;
  DeviceBuffer<std::uint16_t> out_;
  DeviceBuffer<float> post_;
  DeviceBuffer<float> comb_;
  DeviceBuffer<float> workspace_;
  kernels::MhcPreProblem problem_;
};

class MhcPostCase : public Case {
 public:
  MhcPostCase(const Shape& s, const CaseOptions& o)
      : stream_size_(product({s["m"], s["hidden"]})),
        residual_(random_bf16(kMhcStreams * stream_size_ * static_cast<std::size_t>(o.num_sets),
                              o.seed, -2.0F, 2.0F)),
        sublayer_(random_bf16(stream_size_, o.seed + 1, -2.0F, 2.0F)),
        post_(random_floats(product({s["m"], kMhcStreams}), o.seed + 2, 0.0F, 2.0F)),
        comb_(random_floats(product({s["m"], kMhcStreams, kMhcStreams}), o.seed + 3, 0.0F, 1.0F)),
        out_(kMhcStreams * stream_size_),
        problem_{.num_tokens = s.as_int("m"),
                 .hidden = s.as_int("hidden"),
                 .sublayer = sublayer_.data(),
                 .post = post_.data(),
                 .comb = comb_.data(),
                 .out = out_.data()} {}
  void launch(int set, cudaStream_t stream) override {
    problem_.residual =
        residual_.data() + static_cast<std::size_t>(set) * kMhcStreams * stream_size_;
    FULCRUM_CUDA_CHECK(kernels::mhc_post(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    out_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto residual = download_prefix(residual_, kMhcStreams * stream_size_);
    const auto sublayer = sublayer_.download();
    const auto post = post_.download();
    const auto comb = comb_.download();
    kernels::MhcPostProblem host = problem_;
    host.residual = residual.data();
    host.sublayer = sublayer.data();
    host.post = post.data();
    host.comb = comb.data();
    const kernels::MhcPostReference reference = kernels::mhc_post_reference(host);
    return compare_bf16(out_.download(), reference.out, reference.magnitude, kBf16Output, "out");
  }

 private:
  std::size_t stream_size_;
  DeviceBuffer<std::uint16_t> residual_;
  DeviceBuffer<std::uint16_t> sublayer_;
  DeviceBuffer<float> post_;
  DeviceBuffer<float> comb_;
  DeviceBuffer<std::uint16_t> out_;
  kernels::MhcPostProblem problem_;
};

}  // namespace

std::vector<KernelEntry> mhc_entries() {
  const Dimension hidden = dimension("hidden", "values per stream", 4096, 256, 8192, 256);
  KernelEntry pre{
      .name = "mhc_pre",
      .family = "mhc",
      .summary = "skinny GEMM, 20 Sinkhorn iterations, stream mix and RMSNorm; two launches",
      .dimensions = {token_dimension(), hidden,
                     dimension("iterations", "Sinkhorn iterations", 20, 1, 100)},
      .claim =
          [](const Shape& s) {
            return kernels::mhc_pre_claim(s.as_int("m"), s.as_int("hidden"),
                                          s.as_int("iterations"));
          },
      .rotating_bytes =
          [](const Shape& s) {
            return 4.0 * kMhcMixes * kMhcStreams * static_cast<double>(s["hidden"]);
          },
      .unsupported = any_device,
      .make = make_case<MhcPreCase>,
      .verify_shapes =
          "m=1;m=5,hidden=256;m=17,hidden=512,iterations=1;m=33,iterations=3;"
          "m=3,hidden=7168",
      .calibration_shapes = token_shapes({1, 2, 4, 8, 16, 32, 64, 128, 512})};
  KernelEntry post{
      .name = "mhc_post",
      .family = "mhc",
      .summary = "sub-layer output and mixed streams into the next residual",
      .dimensions = {token_dimension(1 << 15), hidden},
      .claim =
          [](const Shape& s) { return kernels::mhc_post_claim(s.as_int("m"), s.as_int("hidden")); },
      .rotating_bytes =
          [](const Shape& s) {
            return 2.0 * kMhcStreams * static_cast<double>(s["m"] * s["hidden"]);
          },
      .unsupported = any_device,
      .make = make_case<MhcPostCase>,
      .verify_shapes = "m=1;m=5,hidden=256;m=3,hidden=7168;m=64",
      .calibration_shapes = token_shapes({1, 4, 16, 64, 128, 512, 8192})};
  return {pre, post};
}

}  // namespace fulcrum::replay
