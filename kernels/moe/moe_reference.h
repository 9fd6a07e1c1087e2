// Slow double-precision reference of the routed experts. No CUDA.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fulcrum::kernels {

// kMxfp4: E2M1 with one E8M0 scale per 32 columns. kNvfp4: E2M1 with one E4M3 scale per 16 columns
// and one float per expert and matrix.
enum class Fp4Format { kMxfp4, kNvfp4 };
constexpr int fp4_group(Fp4Format format) { return format == Fp4Format::kMxfp4 ? 32 : 16; }

// One rank's experts. All matrices row-major; two E2M1 codes per byte, the even column in the low
// nibble.
template <typename Byte, typename Float>
struct MoeWeightsOf {
  Fp4Format format = Fp4Format::kMxfp4;
  Byte gate_up{};          // [experts, 2 * width, hidden / 2]: gate rows, then up rows.
  Byte gate_up_scale{};    // [experts, 2 * width, hidden / group].
  Byte down{};             // [experts, hidden, width / 2].
  Byte down_scale{};       // [experts, hidden, width / group].
  Float gate_up_global{};  // [experts], kNvfp4 only.
  Float down_global{};     // [experts], kNvfp4 only.
};

struct MoeShape {
  int tokens = 0;   // >= 1.
  int hidden = 0;   // A multiple of 1024.
  int width = 0;    // Of one expert on this rank: a multiple of 256.
  int experts = 0;  // At most 1024.
  int top_k = 0;    // At most 16.
};

struct MoeReferenceInputs {
  MoeShape shape;
  MoeWeightsOf<std::span<const std::uint8_t>, std::span<const float>> weights;
  std::span<const std::uint16_t> x;          // [tokens, hidden] BF16.
  std::span<const std::int32_t> expert_ids;  // [tokens, top_k], distinct per token.
  std::span<const float> expert_weights;     // [tokens, top_k].
  double swiglu_limit = 10;  // gate <= limit, |up| <= limit, before SiLU(gate) * up.
};

struct MoeReference {
  std::vector<double> out;        // [tokens, hidden].
  std::vector<double> magnitude;  // Sum of the absolute products of the down projection, weighted.
};

MoeReference moe_reference(const MoeReferenceInputs& inputs);

}  // namespace fulcrum::kernels
