// The references themselves, against sums worked by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/gemm/fp8_block_gemm_reference.h"
#include "kernels/moe/moe_packed.h"
#include "kernels/moe/moe_reference.h"
#include "kernels/sm_120/mxfp_gemm_reference.h"

namespace fulcrum::kernels {
namespace {

constexpr std::uint8_t kOne = 0x38;       // E4M3 1.0.
constexpr std::uint8_t kMinusTwo = 0xc0;  // E4M3 -2.0.

TEST(BlockGemmReference, ScalesApplyPerTokenGroupAndPerWeightBlock) {
  // Two groups of 128 columns, rows 0 and 128 in different weight blocks. Products are all -2:
  //   row 0:   128 * -2 * (0.5 * 1 + 4 * 3) = -3200,   row 128: 128 * -2 * (0.5 * 2 + 4 * 5) =
  //   -5376.
  constexpr int kRows = 129;
  const std::vector<std::uint8_t> x(256, kOne);
  const std::vector<float> x_scale = {0.5f, 4.0f};
  const std::vector<std::uint8_t> weight(kRows * 256, kMinusTwo);
  const std::vector<float> weight_scale = {1.0f, 3.0f, 2.0f, 5.0f};
  const GemmReference r = fp8_block_gemm_reference(x, x_scale, weight, weight_scale, 1, kRows, 256);
  EXPECT_DOUBLE_EQ(r.y[0], -3200);
  EXPECT_DOUBLE_EQ(r.y[127], -3200);
  EXPECT_DOUBLE_EQ(r.y[128], -5376);
  EXPECT_DOUBLE_EQ(r.magnitude[128], 5376);
}

TEST(BlockGemmReference, OneScalePerTensorIsTheSpecialCase) {
  const std::vector<std::uint8_t> x(2 * 128, kOne);
  const std::vector<std::uint8_t> weight(16 * 128, kMinusTwo);
  const GemmReference r = fp8_tensor_gemm_reference(x, 0.5f, weight, 3.0f, 2, 16, 128);
  for (const double y : r.y) EXPECT_DOUBLE_EQ(y, 128 * -2 * 1.5);
}

TEST(MxfpGemmReference, LowNibblesAreEvenColumns) {
  // Byte 0x52: column 0 is code 2 (1.0), column 1 is code 5 (3.0). x = 1 at even columns, 0 at odd
  // ones.
  std::vector<std::uint8_t> x(32, 0);
  for (std::size_t c = 0; c < 32; c += 2) x[c] = kOne;
  const std::vector<std::uint8_t> weight(16, 0x52);
  // Scales 2^2 and 2^-1.
  const GemmReference r = mxfp_gemm_reference(x, std::vector<std::uint8_t>{129}, weight,
                                              std::vector<std::uint8_t>{126}, 1, 1, 32);
  EXPECT_DOUBLE_EQ(r.y[0], 16 * 1.0 * 4 * 0.5);
}

// One expert whose gate and up rows have one non-zero weight in column 0, and x = 1 there.
struct TinyMoe {
  static constexpr int kHidden = 1024;
  static constexpr int kWidth = 256;
  std::vector<std::uint8_t> gate_up = std::vector<std::uint8_t>(2 * kWidth * kHidden / 2, 0);
  std::vector<std::uint8_t> gate_up_scale =
      std::vector<std::uint8_t>(2 * kWidth * kHidden / 32, 127);
  std::vector<std::uint8_t> down =
      std::vector<std::uint8_t>(kHidden * kWidth / 2, 0x22);  // All 1.0.
  std::vector<std::uint8_t> down_scale = std::vector<std::uint8_t>(kHidden * kWidth / 32, 127);

  double run(std::uint8_t gate_code, std::uint8_t up_code, std::uint8_t scale) {
    std::vector<std::uint16_t> x(kHidden, 0);
    x[0] = 0x3f80;
    for (std::size_t row = 0; row < kWidth; ++row) {
      gate_up[row * kHidden / 2] = gate_code;
      gate_up[(kWidth + row) * kHidden / 2] = up_code;
    }
    for (std::uint8_t& code : gate_up_scale) code = scale;
    const std::vector<std::int32_t> ids = {0};
    const std::vector<float> weights = {0.5f};
    const MoeReference r = moe_reference(
        {.shape = {.tokens = 1, .hidden = kHidden, .width = kWidth, .experts = 1, .top_k = 1},
         .weights = {.format = Fp4Format::kMxfp4,
                     .gate_up = gate_up,
                     .gate_up_scale = gate_up_scale,
                     .down = down,
                     .down_scale = down_scale,
                     .gate_up_global = {},
                     .down_global = {}},
         .x = x,
         .expert_ids = ids,
         .expert_weights = weights,
         .swiglu_limit = 10});
    EXPECT_DOUBLE_EQ(r.out[0], r.out[TinyMoe::kHidden - 1]);
    return r.out[0];
  }
};

TEST(MoeReference, SwigluOfGateAndUpTimesTheRoutingWeight) {
  // gate 1, up -2 at scale 1: 256 columns of SiLU(1) * -2, weight 0.5.
  const double silu_one = 1 / (1 + std::exp(-1.0));
  EXPECT_NEAR(TinyMoe().run(0x2, 0xc, 127), 0.5 * 256 * silu_one * -2, 1e-9);
}

TEST(MoeReference, GateIsClampedAboveAndUpOnBothSides) {
  // Codes 7 and 15 are +-6; scale 2 makes 12 and -12, clamped to 10 and -10.
  const double silu_ten = 10 / (1 + std::exp(-10.0));
  EXPECT_NEAR(TinyMoe().run(0x7, 0xf, 128), 0.5 * 256 * silu_ten * -10, 1e-9);
  // A gate of -12 is not clamped.
  const double silu_minus = -12 / (1 + std::exp(12.0));
  EXPECT_NEAR(TinyMoe().run(0xf, 0x7, 128), 0.5 * 256 * silu_minus * 10, 1e-9);
}

// Pair p of a packed word: codes p and p + 4 in BF16's sign (bit 15), lowest exponent bits (8, 7)
// and highest mantissa bit (6), of the lower and upper half.
TEST(MoePackedCodes, ComeApartIntoTheSameCodes) {
  std::mt19937 random(20261130);
  for (int trial = 0; trial < 20000; ++trial) {
    const auto codes = static_cast<std::uint32_t>(random());
    std::uint32_t pairs[4];
    fp4_spread(fp4_pack(codes), pairs);
    for (unsigned p = 0; p < 4; ++p) {
      const std::uint32_t low = codes >> (4 * p) & 15U;
      const std::uint32_t high = codes >> (4 * p + 16) & 15U;
      const auto field = [](std::uint32_t code) { return (code >> 3) << 15 | (code & 7U) << 6; };
      ASSERT_EQ(pairs[p], field(low) | field(high) << 16) << std::hex << codes << " pair " << p;
    }
  }
}

TEST(MoePackedCodes, KeepEveryBit) {
  std::uint32_t seen = 0;
  for (unsigned bit = 0; bit < 32; ++bit) seen |= fp4_pack(1U << bit);
  EXPECT_EQ(seen, 0xffffffffU);
}

}  // namespace
}  // namespace fulcrum::kernels
