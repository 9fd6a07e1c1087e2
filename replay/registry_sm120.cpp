#include "kernels/common/device_buffer.h"
#include "kernels/sm_120/mxfp_gemm.h"
#include "kernels/sm_120/mxfp_gemm_reference.h"
#include "replay/case_parts.h"
#include "replay/random_fill.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;

class MxfpGemmCase : public Case {
 public:
  MxfpGemmCase(const Shape& s, const CaseOptions& options)
      : m_(s.as_int("m")),
        n_(s.as_int("n")),
        k_(s.as_int("k")),
        x_(product({m_, k_})),
        x_scale_(product({m_, k_ / 32})),
        weight_(product({options.num_sets, n_, k_ / 2})),
        weight_scale_(product({options.num_sets, n_, k_ / 32})),
        y_(product({m_, n_})) {
    fill_e4m3(x_.data(), length(x_), options.seed, nullptr, 0x48);  // Magnitudes up to 4.
    fill_e8m0(x_scale_.data(), length(x_scale_), 125, 129, options.seed + 1, nullptr);
    fill_bytes(weight_.data(), length(weight_), options.seed + 2, nullptr);
    fill_e8m0(weight_scale_.data(), length(weight_scale_), 118, 122, options.seed + 3, nullptr);
  }

  void launch(int set, cudaStream_t stream) override {
    const kernels::MxfpGemmArgs args{
        .x = x_.data(),
        .x_scale = x_scale_.data(),
        .weight = weight_.data() + product({set, n_, k_ / 2}),
        .weight_scale = weight_scale_.data() + product({set, n_, k_ / 32}),
        .y = y_.data(),
        .m = m_,
        .n = n_,
        .k = k_};
    FULCRUM_CUDA_CHECK(kernels::launch_mxfp_gemm(args, stream));
  }

  Verification verify(cudaStream_t stream) override {
    y_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto reference =
        kernels::mxfp_gemm_reference(x_.download(), x_scale_.download(), weight_.download(),
                                     weight_scale_.download(), m_, n_, k_);
    return compare_bf16(y_.download(), reference.y, reference.magnitude, kBf16Output, "y");
  }

 private:
  int m_, n_, k_;
  DeviceBuffer<std::uint8_t> x_, x_scale_, weight_, weight_scale_;
  DeviceBuffer<std::uint16_t> y_;
};

}  // namespace

std::vector<KernelEntry> sm120_entries() {
  KernelEntry entry;
  entry.name = "gemm_mxfp8_mxfp4_sm120";
  entry.family = "gemm_fp4";
  entry.summary = "MXFP8 x MXFP4 with the block-scaled tensor instruction of sm_120a";
  entry.dimensions = {dimension("m", "tokens", 1, 1, 4096),
                      dimension("n", "output columns", 1024, 64, 1 << 18, 64),
                      dimension("k", "reduced columns", 4096, 32, 1 << 16, 32)};
  entry.claim = [](const Shape& s) {
    return kernels::mxfp_gemm_claim(s.as_int("m"), s.as_int("n"), s.as_int("k"));
  };
  entry.rotating_bytes = [](const Shape& s) {
    return static_cast<double>(s["n"]) * static_cast<double>(s["k"] / 2 + s["k"] / 32);
  };
  entry.unsupported = [](const Shape&, const DeviceTraits& d) -> std::optional<std::string> {
    if (d.compute_capability != 120) return "block-scaled mma.sync needs sm_120";
    return std::nullopt;
  };
  entry.make = make_case<MxfpGemmCase>;
  entry.verify_shapes = "m=1,n=64,k=32;m=7,n=128,k=512;m=8;m=33,n=256,k=1024";
  entry.calibration_shapes = "m=1;m=16;m=64;m=16,n=4096,k=512";
  return {entry};
}

}  // namespace fulcrum::replay
