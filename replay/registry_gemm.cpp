#include <algorithm>

#include "kernels/common/device_buffer.h"
#include "kernels/common/formats.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gemm/fp8_block_gemm.h"
#include "replay/random_fill.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::BlockScaleFormat;
using kernels::CublasLtKind;
using kernels::DeviceBuffer;

// Codes up to 0x48 are magnitudes up to 4: a plausible activation range that keeps every code
// class.
constexpr std::uint8_t kMaxCode = 0x48;

struct Sizes {
  std::size_t m, n, k;
  explicit Sizes(const Shape& s)
      : m(static_cast<std::size_t>(s["m"])),
        n(static_cast<std::size_t>(s["n"])),
        k(static_cast<std::size_t>(s["k"])) {}
  std::size_t groups() const { return k / 128; }
  std::size_t row_blocks() const { return (n + 127) / 128; }
};

class BlockGemmCase : public Case {
 public:
  BlockGemmCase(const Shape& shape, const CaseOptions& options)
      : size_(shape),
        format_(shape["ue8m0"] != 0 ? BlockScaleFormat::kE8m0 : BlockScaleFormat::kFloat),
        split_k_(shape.as_int("split")),
        x_(size_.m * size_.k),
        x_scale_(size_.m * size_.groups()),
        weight_(size_.n * size_.k * static_cast<std::size_t>(options.num_sets)),
        scale_(size_.row_blocks() * size_.groups()),
        scale_codes_(scale_.size()),
        y_(size_.m * size_.n) {
    fill_e4m3(x_.data(), static_cast<std::int64_t>(x_.size()), options.seed, nullptr, kMaxCode);
    fill_float(x_scale_.data(), static_cast<std::int64_t>(x_scale_.size()), 0.5f, 2.0f,
               options.seed + 1, nullptr);
    fill_e4m3(weight_.data(), static_cast<std::int64_t>(weight_.size()), options.seed + 2, nullptr,
              kMaxCode);
    fill_float(scale_.data(), static_cast<std::int64_t>(scale_.size()), 1e-3f, 4e-3f,
               options.seed + 3, nullptr);
    fill_e8m0(scale_codes_.data(), static_cast<std::int64_t>(scale_codes_.size()), 116, 119,
              options.seed + 4, nullptr);
  }

  void launch(int set, cudaStream_t stream) override {
    const kernels::Fp8BlockGemmArgs args{
        .x = x_.data(),
        .x_scale = x_scale_.data(),
        .weight = weight_.data() + static_cast<std::size_t>(set) * size_.n * size_.k,
        .weight_scale = format_ == BlockScaleFormat::kFloat
                            ? static_cast<const void*>(scale_.data())
                            : static_cast<const void*>(scale_codes_.data()),
        .weight_scale_format = format_,
        .y = y_.data(),
        .m = static_cast<int>(size_.m),
        .n = static_cast<int>(size_.n),
        .k = static_cast<int>(size_.k),
        .split_k = split_k_};
    FULCRUM_CUDA_CHECK(kernels::launch_fp8_block_gemm(args, stream));
  }

  Verification verify(cudaStream_t stream) override {
    y_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    std::vector<float> scale = scale_.download();
    if (format_ == BlockScaleFormat::kE8m0) {
      const auto codes = scale_codes_.download();
      std::ranges::transform(codes, scale.begin(), kernels::decode_e8m0);
    }
    auto weight = weight_.download();
    weight.resize(size_.n * size_.k);
    const auto reference = kernels::fp8_block_gemm_reference(
        x_.download(), x_scale_.download(), weight, scale, static_cast<int>(size_.m),
        static_cast<int>(size_.n), static_cast<int>(size_.k));
    const Tolerance tolerance{
        kBf16Output.relative,
        kernels::fp8_block_gemm_sum_error(static_cast<int>(size_.m), compute_capability()),
        kBf16Output.absolute};
    return compare_bf16(y_.download(), reference.y, reference.magnitude, tolerance, "y");
  }

 private:
  static int compute_capability() {
    int major = 0;
    int minor = 0;
    FULCRUM_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    FULCRUM_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
    return 10 * major + minor;
  }

  Sizes size_;
  BlockScaleFormat format_;
  int split_k_;
  DeviceBuffer<std::uint8_t> x_;
  DeviceBuffer<float> x_scale_;
  DeviceBuffer<std::uint8_t> weight_;
  DeviceBuffer<float> scale_;
  DeviceBuffer<std::uint8_t> scale_codes_;
  DeviceBuffer<std::uint16_t> y_;
};

template <CublasLtKind kKind>
class CublasLtCase : public Case {
 public:
  static constexpr std::size_t kElementBytes = kKind == CublasLtKind::kBf16 ? 2 : 1;

  CublasLtCase(const Shape& shape, const CaseOptions& options)
      : size_(shape),
        gemm_(make_gemm(size_, shape.as_int("algo"))),
        x_(size_.m * size_.k * kElementBytes),
        x_scale_(size_.m * size_.groups()),
        weight_(size_.n * size_.k * kElementBytes * static_cast<std::size_t>(options.num_sets)),
        weight_scale_(size_.row_blocks() * size_.groups()),
        y_(size_.m * size_.n) {
    fill_operand(x_, options.seed);
    fill_operand(weight_, options.seed + 1);
    fill_float(x_scale_.data(), static_cast<std::int64_t>(x_scale_.size()), 0.5f, 2.0f,
               options.seed + 2, nullptr);
    fill_float(weight_scale_.data(), static_cast<std::int64_t>(weight_scale_.size()), 1e-3f, 4e-3f,
               options.seed + 3, nullptr);
  }

  void launch(int set, cudaStream_t stream) override {
    gemm_->launch({.x = x_.data(),
                   .weight = weight_.data() +
                             static_cast<std::size_t>(set) * size_.n * size_.k * kElementBytes,
                   .y = y_.data(),
                   .x_scale = x_scale_.data(),
                   .weight_scale = weight_scale_.data()},
                  stream);
  }

  Verification verify(cudaStream_t stream) override {
    y_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const kernels::GemmReference reference = make_reference();
    // wgmma keeps fewer bits of an FP8 sum than binary32 has (about 14 fractional bits, DeepSeek-V3
    // technical report section 3.3.2); that is the library's arithmetic, not an error of ours.
    const Tolerance tolerance = kKind == CublasLtKind::kBf16
                                    ? kBf16Output
                                    : Tolerance{kBf16Output.relative, 0x1p-11, 1e-30};
    return compare_bf16(y_.download(), reference.y, reference.magnitude, tolerance, "y");
  }

 private:
  static std::unique_ptr<kernels::CublasLtGemm> make_gemm(const Sizes& size, int algorithm) {
    try {
      return std::make_unique<kernels::CublasLtGemm>(kKind, static_cast<int>(size.m),
                                                     static_cast<int>(size.n),
                                                     static_cast<int>(size.k), algorithm);
    } catch (const kernels::CudaError&) {
      throw;  // Out of memory is no answer about the library.
    } catch (const std::runtime_error& error) {
      throw Unsupported(error.what());
    }
  }

  void fill_operand(DeviceBuffer<std::uint8_t>& buffer, std::uint64_t seed) {
    const auto count = static_cast<std::int64_t>(buffer.size() / kElementBytes);
    if constexpr (kKind == CublasLtKind::kBf16) {
      fill_bf16(reinterpret_cast<std::uint16_t*>(buffer.data()), count, -1.0f, 1.0f, seed, nullptr);
    } else {
      fill_e4m3(buffer.data(), count, seed, nullptr, kMaxCode);
    }
  }

  kernels::GemmReference make_reference() const {
    const int m = static_cast<int>(size_.m);
    const int n = static_cast<int>(size_.n);
    const int k = static_cast<int>(size_.k);
    const auto x = x_.download();
    auto weight = weight_.download();
    weight.resize(size_.n * size_.k * kElementBytes);
    const auto x_scale = x_scale_.download();
    const auto weight_scale = weight_scale_.download();
    if constexpr (kKind == CublasLtKind::kBf16) {
      const auto as_bf16 = [](const std::vector<std::uint8_t>& bytes) {
        std::vector<std::uint16_t> codes(bytes.size() / 2);
        for (std::size_t i = 0; i < codes.size(); ++i) {
          codes[i] = static_cast<std::uint16_t>(bytes[2 * i] | (bytes[2 * i + 1] << 8));
        }
        return codes;
      };
      return kernels::bf16_gemm_reference(as_bf16(x), as_bf16(weight), m, n, k);
    } else if constexpr (kKind == CublasLtKind::kFp8Tensor) {
      return kernels::fp8_tensor_gemm_reference(x, x_scale[0], weight, weight_scale[0], m, n, k);
    } else {
      // The library's x scales are [k / 128, m].
      std::vector<float> by_token(x_scale.size());
      for (std::size_t i = 0; i < size_.m; ++i) {
        for (std::size_t group = 0; group < size_.groups(); ++group) {
          by_token[i * size_.groups() + group] = x_scale[group * size_.m + i];
        }
      }
      return kernels::fp8_block_gemm_reference(x, by_token, weight, weight_scale, m, n, k);
    }
  }

  Sizes size_;
  std::unique_ptr<kernels::CublasLtGemm> gemm_;
  DeviceBuffer<std::uint8_t> x_;
  DeviceBuffer<float> x_scale_;
  DeviceBuffer<std::uint8_t> weight_;
  DeviceBuffer<float> weight_scale_;
  DeviceBuffer<std::uint16_t> y_;
};

std::vector<Dimension> gemm_dimensions(std::int64_t k_multiple) {
  return {{.name = "m", .meaning = "tokens", .default_value = 1, .min = 1, .max = 8192},
          {.name = "n",
           .meaning = "output columns",
           .default_value = 4096,
           .min = 16,
           .max = 1 << 18,
           .multiple = 16},
          {.name = "k",
           .meaning = "reduced columns",
           .default_value = 2048,
           .min = k_multiple,
           .max = 1 << 16,
           .multiple = k_multiple}};
}

// The five (N,K) that TP4 tuning covers, over the batch sizes of decode.
std::string campaign_shapes(std::initializer_list<int> tokens) {
  std::string shapes;
  for (const char* nk :
       {"n=1024,k=4096", "n=1536,k=4096", "n=4096,k=2048", "n=4096,k=512", "n=8192,k=1024"}) {
    for (const int m : tokens) {
      shapes += (shapes.empty() ? "m=" : ";m=") + std::to_string(m) + "," + nk;
    }
  }
  return shapes;
}

KernelEntry block_gemm_entry() {
  KernelEntry entry;
  entry.name = "gemm_fp8_block";
  entry.family = "gemm_fp8";
  entry.summary =
      "E4M3 x E4M3 with 128x128 weight and 1x128 activation scales, BF16 out, own kernel";
  entry.dimensions = gemm_dimensions(128);
  entry.dimensions.push_back({.name = "ue8m0",
                              .meaning = "weight scales as E8M0 bytes instead of floats",
                              .default_value = 1,
                              .min = 0,
                              .max = 1});
  entry.dimensions.push_back({.name = "split",
                              .meaning = "blocks per tile along k, 0 = the launcher's choice",
                              .default_value = 0,
                              .min = 0,
                              .max = 8});
  entry.claim = [](const Shape& s) {
    return kernels::fp8_block_gemm_claim(
        s.as_int("m"), s.as_int("n"), s.as_int("k"),
        s["ue8m0"] != 0 ? BlockScaleFormat::kE8m0 : BlockScaleFormat::kFloat);
  };
  entry.rotating_bytes = [](const Shape& s) { return static_cast<double>(s["n"] * s["k"]); };
  entry.unsupported = [](const Shape& s, const DeviceTraits& d) -> std::optional<std::string> {
    if (s["split"] > 1 && d.compute_capability < 90) return "split > 1 needs clusters (sm_90)";
    return std::nullopt;
  };
  entry.make = [](const Shape& s, const CaseOptions& o) -> std::unique_ptr<Case> {
    return std::make_unique<BlockGemmCase>(s, o);
  };
  entry.verify_shapes =
      "m=1,n=1024,k=4096;m=2,n=1536,k=4096;m=7,n=4096,k=2048;m=8,n=4096,k=512;m=9,n=8192,k=1024;"
      "m=16,n=1024,k=4096,ue8m0=0;m=24,n=1536,k=4096;m=32,n=4096,k=2048;m=48,n=4096,k=512;"
      "m=64,n=8192,k=1024,ue8m0=0;m=65,n=1024,k=4096;m=128,n=8192,k=1024;m=200,n=4096,k=2048,ue8m0="
      "0;"
      "m=512,n=1536,k=4096;m=1,n=576,k=5120;m=3,n=16,k=128;m=17,n=400,k=384;m=100,n=272,k=640;"
      "m=5,n=1024,k=4096,split=1;m=5,n=1024,k=4096,split=8;"
      "m=40,n=1024,k=4096,split=4;m=16,n=1024,k=640,split=2;m=60,n=1040,k=1152,split=8;m=30,n=4096,"
      "k=2048,split=8;m=512,n=8192,k=1024";
  entry.calibration_shapes = campaign_shapes({1, 2, 4, 8, 16, 32, 64, 128, 256, 512});
  return entry;
}

template <CublasLtKind kKind>
KernelEntry cublaslt_entry(const char* name, const char* family, const char* summary) {
  KernelEntry entry;
  entry.name = name;
  entry.family = family;
  entry.summary = summary;
  entry.dimensions = gemm_dimensions(kKind == CublasLtKind::kFp8Block ? 128 : 16);
  entry.dimensions.push_back({.name = "algo",
                              .meaning = "rank in the heuristic's list, 0 = its choice",
                              .default_value = 0,
                              .min = 0,
                              .max = 31});
  entry.claim = [](const Shape& s) {
    return kernels::cublaslt_gemm_claim(kKind, s.as_int("m"), s.as_int("n"), s.as_int("k"));
  };
  entry.rotating_bytes = [](const Shape& s) {
    return static_cast<double>(s["n"] * s["k"]) * CublasLtCase<kKind>::kElementBytes;
  };
  entry.unsupported = [](const Shape&, const DeviceTraits& d) -> std::optional<std::string> {
    if (const std::string absence = kernels::cublaslt_absence(); !absence.empty()) return absence;
    if (kKind == CublasLtKind::kFp8Tensor && d.compute_capability < 89) {
      return "FP8 tensor cores need sm_89";
    }
    if (kKind == CublasLtKind::kFp8Block && d.compute_capability / 10 != 9) {
      return "cuBLASLt has 128x128 block scales on sm_90 only";
    }
    return std::nullopt;
  };
  entry.make = [](const Shape& s, const CaseOptions& o) -> std::unique_ptr<Case> {
    return std::make_unique<CublasLtCase<kKind>>(s, o);
  };
  entry.verify_shapes =
      "m=2,n=1024,k=4096;m=16,n=4096,k=512;m=64,n=8192,k=1024;m=128,n=1536,k=4096";
  entry.calibration_shapes = campaign_shapes({1, 8, 16, 32, 64, 256});
  return entry;
}

}  // namespace

std::vector<KernelEntry> gemm_entries() {
  KernelEntry bf16 = cublaslt_entry<CublasLtKind::kBf16>("gemm_bf16_cublaslt", "gemm_bf16",
                                                         "BF16 x BF16 by cuBLASLt");
  // The BF16 projections of a layer: gate, compressors (CSA, HCA, indexer), one wo_a group pair at
  // TP4.
  bf16.calibration_shapes.clear();
  for (const char* nk :
       {"n=256,k=4096", "n=512,k=4096", "n=1024,k=4096", "n=2048,k=4096", "n=32320,k=4096"}) {
    for (const int m : {1, 4, 16, 64, 256}) {
      bf16.calibration_shapes +=
          (bf16.calibration_shapes.empty() ? "m=" : ";m=") + std::to_string(m) + "," + nk;
    }
  }
  return {
      block_gemm_entry(),
      cublaslt_entry<CublasLtKind::kFp8Tensor>("gemm_fp8_tensor_cublaslt", "gemm_fp8",
                                               "E4M3 x E4M3 with one scale per tensor by cuBLASLt"),
      cublaslt_entry<CublasLtKind::kFp8Block>(
          "gemm_fp8_block_cublaslt", "gemm_fp8",
          "E4M3 x E4M3 with 128x128 and 1x128 float scales by cuBLASLt (sm_90)"),
      bf16};
}

}  // namespace fulcrum::replay
