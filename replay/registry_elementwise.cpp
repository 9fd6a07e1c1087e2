#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/elementwise/elementwise_reference.h"
#include "replay/case_parts.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;

class RmsNormCase : public Case {
 public:
  RmsNormCase(const Shape& s, const CaseOptions& o)
      : size_(product({s["m"], s["dim"]})),
        in_(random_bf16(size_ * static_cast<std::size_t>(o.num_sets), o.seed, -3.0F, 3.0F)),
        weight_(random_bf16(product({s["dim"]}), o.seed + 1, 0.5F, 1.5F)),
        out_(size_),
        problem_{.num_rows = s.as_int("m"),
                 .dim = s.as_int("dim"),
                 .weight = weight_.data(),
                 .out = out_.data()} {}
  void launch(int set, cudaStream_t stream) override {
    problem_.in = in_.data() + static_cast<std::size_t>(set) * size_;
    FULCRUM_CUDA_CHECK(kernels::rms_norm(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    out_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto in = download_prefix(in_, size_);
    const auto weight = weight_.download();
    kernels::RmsNormProblem host = problem_;
    host.in = in.data();
    host.weight = weight.data();
    return compare_bf16(out_.download(), kernels::rms_norm_reference(host), {}, kBf16Output, "out");
  }

 private:
  std::size_t size_;
  DeviceBuffer<std::uint16_t> in_;
  DeviceBuffer<std::uint16_t> weight_;
  DeviceBuffer<std::uint16_t> out_;
  kernels::RmsNormProblem problem_;
};

class GroupQuantizeCase : public Case {
 public:
  GroupQuantizeCase(const Shape& s, const CaseOptions& o)
      : size_(product({s["m"], s["dim"]})),
        e8m0_(s["ue8m0"] != 0),
        in_(random_bf16(size_ * static_cast<std::size_t>(o.num_sets), o.seed, -3.0F, 3.0F)),
        codes_(size_),
        scales_(size_ / kernels::kQuantizeGroup),
        scales_e8m0_(scales_.size()),
        problem_{.num_rows = s.as_int("m"),
                 .dim = s.as_int("dim"),
                 .codes = codes_.data(),
                 .scales = e8m0_ ? nullptr : scales_.data(),
                 .scales_e8m0 = e8m0_ ? scales_e8m0_.data() : nullptr} {}
  void launch(int set, cudaStream_t stream) override {
    problem_.in = in_.data() + static_cast<std::size_t>(set) * size_;
    FULCRUM_CUDA_CHECK(kernels::group_quantize(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    codes_.poison();
    scales_.poison();
    scales_e8m0_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto in = download_prefix(in_, size_);
    std::vector<std::uint8_t> codes(size_);
    std::vector<float> scales(scales_.size());
    std::vector<std::uint8_t> scales_e8m0(scales_.size());
    kernels::GroupQuantizeProblem host = problem_;
    host.in = in.data();
    host.codes = codes.data();
    host.scales = e8m0_ ? nullptr : scales.data();
    host.scales_e8m0 = e8m0_ ? scales_e8m0.data() : nullptr;
    kernels::group_quantize_reference(host);
    const auto as_ints = [](const auto& values) {
      return std::vector<std::int32_t>(values.begin(), values.end());
    };
    const Verification of_codes =
        compare_exact(as_ints(codes_.download()), as_ints(codes), "codes");
    if (e8m0_) {
      return merge(of_codes,
                   compare_exact(as_ints(scales_e8m0_.download()), as_ints(scales_e8m0), "scales"));
    }
    return merge(of_codes,
                 compare(scales_.download(), std::vector<double>(scales.begin(), scales.end()), {},
                         kExact, "scales"));
  }

 private:
  std::size_t size_;
  bool e8m0_;
  DeviceBuffer<std::uint16_t> in_;
  DeviceBuffer<std::uint8_t> codes_;
  DeviceBuffer<float> scales_;
  DeviceBuffer<std::uint8_t> scales_e8m0_;
  kernels::GroupQuantizeProblem problem_;
};

class SwigluCase : public Case {
 public:
  SwigluCase(const Shape& s, const CaseOptions& o)
      : size_(product({s["m"], s["dim"]})),
        // Beyond the limit of 10 on both sides.
        in_(random_bf16(2 * size_ * static_cast<std::size_t>(o.num_sets), o.seed, -15.0F, 15.0F)),
        out_(size_),
        problem_{.num_rows = s.as_int("m"), .width = s.as_int("dim"), .out = out_.data()} {}
  void launch(int set, cudaStream_t stream) override {
    problem_.in = in_.data() + static_cast<std::size_t>(set) * 2 * size_;
    FULCRUM_CUDA_CHECK(kernels::swiglu(problem_, stream));
  }
  Verification verify(cudaStream_t stream) override {
    out_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto in = download_prefix(in_, 2 * size_);
    kernels::SwigluProblem host = problem_;
    host.in = in.data();
    return compare_bf16(out_.download(), kernels::swiglu_reference(host), {}, kBf16Output, "out");
  }

 private:
  std::size_t size_;
  DeviceBuffer<std::uint16_t> in_;
  DeviceBuffer<std::uint16_t> out_;
  kernels::SwigluProblem problem_;
};

Dimension dim_dimension(std::int64_t default_value, std::int64_t max, std::int64_t multiple) {
  return dimension("dim", "values per row", default_value, multiple, max, multiple);
}
}  // namespace

std::vector<KernelEntry> elementwise_entries() {
  const std::string decode_tokens = token_shapes({1, 8, 64, 512, 4096});
  std::vector<KernelEntry> entries;
  entries.push_back(
      {.name = "rms_norm",
       .family = "elementwise",
       .summary = "RMSNorm with weight over a row, BF16",
       .dimensions = {token_dimension(1 << 17), dim_dimension(4096, 16384, 8)},
       .claim =
           [](const Shape& s) {
             return kernels::rms_norm_claim(s.as_int("m"), s.as_int("dim"), true);
           },
       .rotating_bytes =
           [](const Shape& s) { return 2.0 * static_cast<double>(s["m"] * s["dim"]); },
       .unsupported = any_device,
       .make = make_case<RmsNormCase>,
       .verify_shapes =
           "m=1,dim=4096;m=3,dim=1024;m=5,dim=512;m=7,dim=16384;m=2,dim=7168;m=33,dim=8;m=1027",
       .calibration_shapes =
           decode_tokens + ";" + token_shapes({1, 64}, ",dim=1024") + ";m=32768"});
  entries.push_back(
      {.name = "group_quantize",
       .family = "elementwise",
       .summary = "BF16 to E4M3 with a scale per 128 values",
       .dimensions = {token_dimension(1 << 17), dim_dimension(4096, 1 << 16, 128),
                      dimension("ue8m0", "power-of-two scales as E8M0 bytes", 1, 0, 1)},
       .claim =
           [](const Shape& s) {
             return kernels::group_quantize_claim(s.as_int("m"), s.as_int("dim"), s["ue8m0"] != 0);
           },
       .rotating_bytes =
           [](const Shape& s) { return 2.0 * static_cast<double>(s["m"] * s["dim"]); },
       .unsupported = any_device,
       .make = make_case<GroupQuantizeCase>,
       .verify_shapes = "m=1;m=1,dim=128,ue8m0=0;m=3,dim=1024;m=7,dim=2048,ue8m0=0;m=17,dim=512",
       .calibration_shapes =
           decode_tokens + ";" + token_shapes({1, 64}, ",dim=1024") + ";m=32768"});
  entries.push_back(
      {.name = "swiglu",
       .family = "elementwise",
       .summary = "silu(gate) x up with clamp 10, BF16",
       .dimensions = {token_dimension(1 << 17), dim_dimension(512, 1 << 15, 8)},
       .claim =
           [](const Shape& s) { return kernels::swiglu_claim(s.as_int("m"), s.as_int("dim")); },
       .rotating_bytes =
           [](const Shape& s) { return 4.0 * static_cast<double>(s["m"] * s["dim"]); },
       .unsupported = any_device,
       .make = make_case<SwigluCase>,
       .verify_shapes = "m=1;m=3,dim=2048;m=33,dim=8",
       .calibration_shapes = decode_tokens + ";m=16384,dim=4096"});
  return entries;
}

}  // namespace fulcrum::replay
