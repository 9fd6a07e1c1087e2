#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/common/device_buffer.h"
#include "kernels/moe/moe.h"
#include "replay/random_fill.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;
using kernels::Fp4Format;
using kernels::MoeShape;

MoeShape moe_shape(const Shape& s) {
  return {.tokens = s.as_int("t"),
          .hidden = s.as_int("hidden"),
          .width = s.as_int("width"),
          .experts = s.as_int("experts"),
          .top_k = s.as_int("topk")};
}

Fp4Format moe_format(const Shape& s) {
  return s["nvfp4"] != 0 ? Fp4Format::kNvfp4 : Fp4Format::kMxfp4;
}

// Routing is uniform without replacement per token and independent between tokens, so a set reads
// this many experts on average.
double expected_distinct(const MoeShape& s) {
  return s.experts * (1.0 - std::pow(1.0 - 1.0 * s.top_k / s.experts, s.tokens));
}

std::vector<std::int32_t> draw_routing(const MoeShape& s, std::mt19937_64& random) {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> deck(static_cast<std::size_t>(s.experts));
  for (int token = 0; token < s.tokens; ++token) {
    for (std::size_t i = 0; i < deck.size(); ++i) deck[i] = static_cast<std::int32_t>(i);
    for (std::size_t k = 0; k < static_cast<std::size_t>(s.top_k); ++k) {
      const std::size_t pick = k + random() % (deck.size() - k);
      std::swap(deck[k], deck[pick]);
      ids.push_back(deck[k]);
    }
  }
  return ids;
}

struct ExpertBank {
  std::size_t codes, scales;  // Bytes per set of one matrix of all experts.
  DeviceBuffer<std::uint8_t> code_buffer, scale_buffer;
  DeviceBuffer<float> global;

  ExpertBank(const MoeShape& s, Fp4Format format, std::size_t rows, std::size_t columns,
             const CaseOptions& options, std::uint64_t seed)
      : codes(static_cast<std::size_t>(s.experts) * rows * columns / 2),
        scales(static_cast<std::size_t>(s.experts) * rows * columns /
               static_cast<std::size_t>(kernels::fp4_group(format))),
        code_buffer(codes * static_cast<std::size_t>(options.num_sets)),
        scale_buffer(scales * static_cast<std::size_t>(options.num_sets)),
        global(static_cast<std::size_t>(s.experts)) {
    // Any nibble is a valid E2M1 code. Scales make the gate's standard deviation about 3, so that
    // some activations reach the clamp at 10.
    fill_bytes(code_buffer.data(), static_cast<std::int64_t>(code_buffer.size()), seed, nullptr);
    const auto count = static_cast<std::int64_t>(scale_buffer.size());
    if (format == Fp4Format::kMxfp4) {
      fill_e8m0(scale_buffer.data(), count, 120, 123, seed + 1, nullptr);
    } else {
      fill_e8m0(scale_buffer.data(), count, 0x28, 0x38, seed + 1,
                nullptr);  // E4M3 codes of 0.25 to 1.
    }
    fill_float(global.data(), static_cast<std::int64_t>(global.size()), 0.03f, 0.06f, seed + 2,
               nullptr);
  }
};

template <bool kGrouped>
class MoeCase : public Case {
 public:
  MoeCase(const Shape& shape, const CaseOptions& options)
      : shape_(moe_shape(shape)),
        format_(moe_format(shape)),
        hidden_(static_cast<std::size_t>(shape_.hidden)),
        width_(static_cast<std::size_t>(shape_.width)),
        slots_(static_cast<std::size_t>(shape_.tokens) * static_cast<std::size_t>(shape_.top_k)),
        gate_up_(shape_, format_, 2 * width_, hidden_, options, options.seed),
        down_(shape_, format_, hidden_, width_, options, options.seed + 10),
        x_(static_cast<std::size_t>(shape_.tokens) * hidden_),
        expert_ids_(slots_ * static_cast<std::size_t>(options.num_sets)),
        expert_weights_(slots_),
        out_(x_.size()),
        workspace_(kernels::moe_workspace_bytes(shape_)) {
    fill_bf16(x_.data(), static_cast<std::int64_t>(x_.size()), -1.0f, 1.0f, options.seed + 20,
              nullptr);
    fill_float(expert_weights_.data(), static_cast<std::int64_t>(slots_), 0.1f, 0.5f,
               options.seed + 21, nullptr);
    std::mt19937_64 random(options.seed);
    std::vector<std::int32_t> ids;
    for (int set = 0; set < options.num_sets; ++set) {
      const auto routing = draw_routing(shape_, random);
      ids.insert(ids.end(), routing.begin(), routing.end());
    }
    expert_ids_.upload(ids);
  }

  void launch(int set, cudaStream_t stream) override {
    const auto s = static_cast<std::size_t>(set);
    const kernels::MoeArgs args{
        .shape = shape_,
        .weights = {.format = format_,
                    .gate_up = gate_up_.code_buffer.data() + s * gate_up_.codes,
                    .gate_up_scale = gate_up_.scale_buffer.data() + s * gate_up_.scales,
                    .down = down_.code_buffer.data() + s * down_.codes,
                    .down_scale = down_.scale_buffer.data() + s * down_.scales,
                    .gate_up_global = gate_up_.global.data(),
                    .down_global = down_.global.data()},
        .x = x_.data(),
        .expert_ids = expert_ids_.data() + s * slots_,
        .expert_weights = expert_weights_.data(),
        .swiglu_limit = kSwigluLimit,
        .out = out_.data(),
        .workspace = workspace_.data()};
    FULCRUM_CUDA_CHECK(kGrouped ? kernels::launch_moe_grouped(args, stream)
                                : kernels::launch_moe_per_slot(args, stream));
  }

  Verification verify(cudaStream_t stream) override {
    const auto first_set = [](const DeviceBuffer<std::uint8_t>& buffer, std::size_t bytes) {
      std::vector<std::uint8_t> host(bytes);
      FULCRUM_CUDA_CHECK(cudaMemcpy(host.data(), buffer.data(), bytes, cudaMemcpyDeviceToHost));
      return host;
    };
    const auto gate_up = first_set(gate_up_.code_buffer, gate_up_.codes);
    const auto gate_up_scale = first_set(gate_up_.scale_buffer, gate_up_.scales);
    const auto down = first_set(down_.code_buffer, down_.codes);
    const auto down_scale = first_set(down_.scale_buffer, down_.scales);
    if constexpr (kGrouped) {
      // What lies there is taken as published codes and repacked; timing needs no repacking, since
      // random bytes are random codes in any order.
      FULCRUM_CUDA_CHECK(kernels::launch_moe_pack(
          gate_up_.code_buffer.data(), static_cast<std::int64_t>(gate_up_.codes), stream));
      FULCRUM_CUDA_CHECK(kernels::launch_moe_pack(down_.code_buffer.data(),
                                                  static_cast<std::int64_t>(down_.codes), stream));
    }
    out_.poison();
    workspace_.poison();
    launch(0, stream);
    FULCRUM_CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto gate_up_global = gate_up_.global.download();
    const auto down_global = down_.global.download();
    const auto x = x_.download();
    auto ids = expert_ids_.download();
    ids.resize(slots_);
    const auto weights = expert_weights_.download();
    const auto reference = kernels::moe_reference({.shape = shape_,
                                                   .weights = {.format = format_,
                                                               .gate_up = gate_up,
                                                               .gate_up_scale = gate_up_scale,
                                                               .down = down,
                                                               .down_scale = down_scale,
                                                               .gate_up_global = gate_up_global,
                                                               .down_global = down_global},
                                                   .x = x,
                                                   .expert_ids = ids,
                                                   .expert_weights = weights,
                                                   .swiglu_limit = kSwigluLimit});
    // Activations between the two GEMMs are BF16: each product of w2 may be off by half an ulp
    // (2^-9), doubled for what the binary32 sums and the exponential before them add.
    const Tolerance tolerance{kBf16Output.relative, 0x1p-8, kBf16Output.absolute};
    return compare_bf16(out_.download(), reference.out, reference.magnitude, tolerance, "out");
  }

 private:
  static constexpr float kSwigluLimit = 10;
  MoeShape shape_;
  Fp4Format format_;
  std::size_t hidden_, width_, slots_;
  ExpertBank gate_up_, down_;
  DeviceBuffer<std::uint16_t> x_;
  DeviceBuffer<std::int32_t> expert_ids_;
  DeviceBuffer<float> expert_weights_;
  DeviceBuffer<std::uint16_t> out_;
  DeviceBuffer<std::uint8_t> workspace_;
};

template <bool kGrouped>
KernelEntry moe_entry(const char* name, const char* summary) {
  KernelEntry entry;
  entry.name = name;
  entry.family = "moe";
  entry.summary = summary;
  entry.dimensions = {
      {.name = "t", .meaning = "tokens", .default_value = 1, .min = 1, .max = 4096},
      {.name = "hidden",
       .meaning = "model width",
       .default_value = 4096,
       .min = 1024,
       .max = 16384,
       .multiple = 1024},
      {.name = "width",
       .meaning = "expert width on this rank",
       .default_value = 512,
       .min = 256,
       .max = 8192,
       .multiple = 256},
      {.name = "experts",
       .meaning = "experts on this rank",
       .default_value = 256,
       .min = 1,
       .max = 1024},
      {.name = "topk", .meaning = "experts per token", .default_value = 6, .min = 1, .max = 16},
      {.name = "nvfp4",
       .meaning = "NVFP4 instead of MXFP4",
       .default_value = 0,
       .min = 0,
       .max = 1}};
  entry.claim = [](const Shape& s) {
    const MoeShape shape = moe_shape(s);
    return kGrouped ? kernels::moe_grouped_claim(shape, moe_format(s), expected_distinct(shape))
                    : kernels::moe_per_slot_claim(shape, moe_format(s));
  };
  entry.rotating_bytes = [](const Shape& s) {
    const MoeShape shape = moe_shape(s);
    return expected_distinct(shape) * kernels::moe_expert_bytes(shape, moe_format(s));
  };
  entry.unsupported = [](const Shape& s, const DeviceTraits& d) -> std::optional<std::string> {
    const MoeShape shape = moe_shape(s);
    if (shape.top_k > shape.experts) return "more experts per token than there are";
    const double bank = shape.experts * kernels::moe_expert_bytes(shape, moe_format(s));
    if (bank > 0.4 * static_cast<double>(d.memory_bytes)) {
      return "one set of expert weights takes more than 40 % of the device's memory";
    }
    return std::nullopt;
  };
  entry.make = [](const Shape& s, const CaseOptions& o) -> std::unique_ptr<Case> {
    return std::make_unique<MoeCase<kGrouped>>(s, o);
  };
  entry.verify_shapes =
      "t=1;t=3,hidden=1024,width=256,experts=8,topk=2;t=5,hidden=2048,width=256,experts=16;"
      "t=17,hidden=1024,width=512,experts=5,topk=3;t=64,hidden=1024,width=256,experts=7;"
      "t=150,hidden=1024,width=1024,experts=6,topk=4;t=9,hidden=1024,width=2048,experts=4,topk=1;"
      "t=16;t=1,nvfp4=1;t=6,hidden=1024,width=256,experts=16,nvfp4=1;"
      "t=70,hidden=2048,width=512,experts=9,nvfp4=1";
  entry.calibration_shapes =
      "t=1;t=2;t=4;t=8;t=16;t=32;t=64;t=128;t=256;t=1,width=1024;t=16,width=1024;t=64,width=1024;"
      "t=1,nvfp4=1;t=16,nvfp4=1;t=64,nvfp4=1";
  return entry;
}

}  // namespace

std::vector<KernelEntry> moe_entries() {
  KernelEntry per_slot = moe_entry<false>(
      "moe_per_slot", "routed experts, one block per (token, expert) slot, CUDA cores, no reuse");
  // Linear in slots: larger batches would only repeat the slope.
  per_slot.calibration_shapes = "t=1;t=2;t=4;t=8;t=16;t=64;t=1,nvfp4=1;t=16,nvfp4=1";
  return {moe_entry<true>("moe_grouped",
                          "routed experts, sorted by expert, FP4 decoded to BF16 tensor cores"),
          per_slot};
}

}  // namespace fulcrum::replay
