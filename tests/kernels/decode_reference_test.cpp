// Hand-derived checks of the references of the indexer, compressor, mHC, router, head and row-wise
// kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "kernels/common/formats.h"
#include "kernels/elementwise/elementwise_reference.h"
#include "kernels/head/head_reference.h"
#include "kernels/indexer/indexer_reference.h"
#include "kernels/mhc/mhc_reference.h"
#include "kernels/router/router_reference.h"

namespace fulcrum::kernels {
namespace {

TEST(Philox, ReproducesThePublishedKnownAnswers) {
  // kat_vectors of Random123, philox4x32 with 10 rounds.
  const PhiloxWords zero = philox(0, 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5U);
  EXPECT_EQ(zero.word[1], 0xe169c58dU);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cU);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8U);
  const PhiloxWords ones = philox(~0ULL, ~0ULL, ~0ULL);
  EXPECT_EQ(ones.word[0], 0x408f276dU);
  EXPECT_EQ(ones.word[1], 0x41c83b0eU);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6U);
  EXPECT_EQ(ones.word[3], 0x6d5451fdU);
}

TEST(Philox, UniformsExcludeBothEnds) {
  EXPECT_GT(uniform_open(0), 0.0F);
  EXPECT_LT(uniform_open(~0U), 1.0F);
}

TEST(Sampling, DrawsFollowTheSoftmaxAtTheTemperature) {
  // Logits ln 1, ln 2, ln 3, ln 4 at temperature 1: probabilities 0.1 .. 0.4.
  const std::vector<float> logits = {0.0F, std::log(2.0F), std::log(3.0F), std::log(4.0F)};
  const float temperature = 1.0F;
  std::array<int, 4> drawn{};
  constexpr int kDraws = 20000;
  for (int step = 0; step < kDraws; ++step) {
    const auto scores = sampling_scores_reference({.num_tokens = 1,
                                                   .vocab = 4,
                                                   .logits = logits.data(),
                                                   .temperatures = &temperature,
                                                   .seed = 17,
                                                   .step = static_cast<std::uint64_t>(step)});
    ++drawn[static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) -
                                     scores.begin())];
  }
  for (int i = 0; i < 4; ++i) {
    const double p = 0.1 * (i + 1);
    // Four standard deviations of a binomial.
    EXPECT_NEAR(drawn[static_cast<std::size_t>(i)], kDraws * p,
                4.0 * std::sqrt(kDraws * p * (1.0 - p)));
  }
}

TEST(Sinkhorn, EqualLogitsStayUniform) {
  const auto m = sinkhorn_reference({}, 20, 0.0);
  for (const double value : m) EXPECT_DOUBLE_EQ(value, 0.25);
}

TEST(Sinkhorn, ColumnsAddUpToOneAndRowsNearlySoAfterTwentyIterations) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-2.0, 2.0);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::array<double, 16> logits;
    for (double& value : logits) value = uniform(random);
    const auto m = sinkhorn_reference(logits, 20, 1e-6);
    for (int i = 0; i < 4; ++i) {
      double row = 0.0;
      double column = 0.0;
      for (int j = 0; j < 4; ++j) {
        row += m[static_cast<std::size_t>(4 * i + j)];
        column += m[static_cast<std::size_t>(4 * j + i)];
      }
      EXPECT_NEAR(column, 1.0, 2e-6);
      EXPECT_NEAR(row, 1.0, 1e-3);
    }
  }
}

TEST(MhcPost, SourceStreamIsTheRowOfTheMixingMatrix) {
  // comb[1][2] = 1 and nothing else: stream 1 becomes stream 2; post adds 3 f to stream 0.
  std::vector<std::uint16_t> residual(4 * 8);
  for (int s = 0; s < 4; ++s) {
    for (int d = 0; d < 8; ++d)
      residual[static_cast<std::size_t>(8 * s + d)] = encode_bf16(static_cast<float>(s + 1));
  }
  const std::vector<std::uint16_t> sublayer(8, encode_bf16(2.0F));
  const std::vector<float> post = {3.0F, 0.0F, 0.0F, 0.0F};
  std::vector<float> comb(16, 0.0F);
  comb[4 * 1 + 2] = 1.0F;
  const auto result = mhc_post_reference({.num_tokens = 1,
                                          .hidden = 8,
                                          .residual = residual.data(),
                                          .sublayer = sublayer.data(),
                                          .post = post.data(),
                                          .comb = comb.data()});
  EXPECT_EQ(result.out[0], 6.0);
  EXPECT_EQ(result.out[8], 0.0);
  EXPECT_EQ(result.out[16], 2.0);
  EXPECT_EQ(result.out[24], 0.0);
}

TEST(Router, BiasSteersTheChoiceButNotTheWeight) {
  // Equal logits: scores are equal, so weights are 1.5 / 2 each; the bias picks experts 3 and 1.
  std::vector<float> logits(128, 0.0F);
  std::vector<float> bias(128, 0.0F);
  bias[1] = 0.5F;
  bias[3] = 1.0F;
  const auto result = router_reference({.num_tokens = 1,
                                        .num_experts = 128,
                                        .top_k = 2,
                                        .logits = logits.data(),
                                        .bias = bias.data()});
  EXPECT_EQ(result.experts, (std::vector<std::int32_t>{3, 1}));
  EXPECT_DOUBLE_EQ(result.weights[0], 0.75);
  EXPECT_DOUBLE_EQ(result.weights[1], 0.75);
  EXPECT_NEAR(result.gaps[0], 0.5, 1e-12);
  EXPECT_NEAR(result.scores[0], std::sqrt(std::log(2.0)), 1e-15);
}

TEST(Router, HashLayersTakeTheListedExpertsInOrder) {
  const std::vector<float> logits = {0.0F, 1.0F, 2.0F, 3.0F};
  const std::vector<std::int64_t> table = {0, 1, 3, 2};
  const std::int32_t token = 1;
  const auto result = router_reference({.num_tokens = 1,
                                        .num_experts = 4,
                                        .top_k = 2,
                                        .logits = logits.data(),
                                        .token_ids = &token,
                                        .expert_of_token = table.data()});
  EXPECT_EQ(result.experts, (std::vector<std::int32_t>{3, 2}));
  EXPECT_NEAR(result.weights[0] + result.weights[1], 1.5, 1e-12);
  EXPECT_GT(result.weights[0], result.weights[1]);
}

TEST(Hadamard, IsOrthonormalAndItsOwnInverse) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  IndexRow values;
  for (double& value : values) value = normal(random);
  const IndexRow once = hadamard_reference(values);
  const IndexRow twice = hadamard_reference(once);
  double before = 0.0;
  double after = 0.0;
  for (std::size_t i = 0; i < kIndexDim; ++i) {
    EXPECT_NEAR(twice[i], values[i], 1e-12);
    before += values[i] * values[i];
    after += once[i] * once[i];
  }
  EXPECT_NEAR(before, after, 1e-9);
}

TEST(TopK, ViolationsAreNamed) {
  const std::vector<float> logits = {1.0F, 5.0F, 3.0F, 4.0F};
  const std::int32_t count = 4;
  const TopKProblem problem{
      .num_tokens = 1, .max_keys = 4, .top_k = 2, .logits = logits.data(), .key_counts = &count};
  const std::vector<std::int32_t> right = {3, 1};
  const std::vector<std::int32_t> smaller = {1, 2};
  const std::vector<std::int32_t> twice = {1, 1};
  const std::vector<std::int32_t> outside = {1, 4};
  const std::vector<std::int32_t> missing = {1, -1};
  EXPECT_FALSE(top_k_violation(problem, right.data()));
  EXPECT_TRUE(top_k_violation(problem, smaller.data()));
  EXPECT_TRUE(top_k_violation(problem, twice.data()));
  EXPECT_TRUE(top_k_violation(problem, outside.data()));
  EXPECT_TRUE(top_k_violation(problem, missing.data()));
}

TEST(Compressor, EqualGatesAverageBothHalvesOfTheOverlap) {
  // Ratio 4 with overlap at position 7: the first half of positions 0-3 and the second half of 4-7.
  // Values are the position in the first half and 10 + position in the second: mean of
  // 0,1,2,3,14,15,16,17 = 8.5 in every dimension, which RMSNorm turns into 1; angle zero at the
  // group's first position leaves the rotary part.
  const CompressorShape shape{.num_requests = 1,
                              .tokens_per_request = 1,
                              .ratio = 4,
                              .overlap = true,
                              .ring_rows = 8,
                              .kind = CompressedRow::kAttention};
  const std::size_t width = static_cast<std::size_t>(compressor_width(shape));
  const std::size_t dim = width / 2;
  std::vector<float> values(8 * width);
  const std::vector<float> scores(8 * width, 0.5F);
  for (std::size_t p = 0; p < 8; ++p) {
    for (std::size_t c = 0; c < width; ++c)
      values[p * width + c] = static_cast<float>(p + (c < dim ? 0 : 10));
  }
  std::vector<float> projected(2 * width, 0.0F);
  std::copy(values.begin() + static_cast<std::ptrdiff_t>(7 * width), values.end(),
            projected.begin());
  const std::vector<float> ape(4 * width, 0.5F);
  const std::vector<std::uint16_t> norm_weight(dim, encode_bf16(1.0F));
  std::vector<float> cos_sin(8 * 64, 0.0F);
  for (std::size_t i = 0; i < cos_sin.size(); i += 2) cos_sin[i] = 1.0F;
  const std::int32_t first_position = 7;
  const std::int32_t slot = 0;
  const CompressorProblem problem{.shape = shape,
                                  .epsilon = 0.0F,
                                  .projected = projected.data(),
                                  .ape = ape.data(),
                                  .first_positions = &first_position,
                                  .state_slots = &slot,
                                  .value_ring = values.data(),
                                  .score_ring = const_cast<float*>(scores.data()),
                                  .norm_weight = norm_weight.data(),
                                  .cos_sin = cos_sin.data(),
                                  .rows = nullptr,
                                  .pool = {},
                                  .index_pool = {}};
  const auto row = compressor_reference(problem, 0, 0);
  ASSERT_TRUE(row);
  for (const double value : *row) EXPECT_NEAR(value, 1.0, 1e-12);
}

TEST(Compressor, ClaimOfAPlainTokenIsItsStateWrite) {
  const CompressorShape shape{.num_requests = 16,
                              .tokens_per_request = 1,
                              .ratio = 4,
                              .overlap = true,
                              .ring_rows = 8,
                              .kind = CompressedRow::kAttention};
  // 1024 values and gates read and written in FP32, a row number, position and slot, four rows of
  // positional bias.
  EXPECT_DOUBLE_EQ(compressor_claim(shape, 0.0).bytes,
                   16 * (16.0 * 1024 + 4) + 8.0 * 16 + 4.0 * 1024 * 4);
}

TEST(GroupQuantize, PowerOfTwoScaleIsTheSmallestThatHoldsTheGroup) {
  // amax 448 * 1.5: the scale must be 2; amax 448 exactly: 1.
  std::vector<std::uint16_t> in(256, encode_bf16(0.0F));
  in[0] = encode_bf16(672.0F);
  in[128] = encode_bf16(448.0F);
  std::vector<std::uint8_t> codes(256);
  std::vector<std::uint8_t> scales(2);
  group_quantize_reference({.num_rows = 1,
                            .dim = 256,
                            .in = in.data(),
                            .codes = codes.data(),
                            .scales_e8m0 = scales.data()});
  EXPECT_EQ(decode_e8m0(scales[0]), 2.0F);
  // 672 / 2 = 336 lies half-way between 320 (code ...010) and 352 (...011): ties to even.
  EXPECT_EQ(decode_e4m3(codes[0]), 320.0F);
  EXPECT_EQ(decode_e8m0(scales[1]), 1.0F);
  EXPECT_EQ(decode_e4m3(codes[128]), 448.0F);
}

TEST(Swiglu, ClampsTheGateAboveAndTheUpPathOnBothSides) {
  const std::vector<std::uint16_t> in = {
      encode_bf16(20.0F), encode_bf16(-50.0F), encode_bf16(0.0F), encode_bf16(1.0F),
      encode_bf16(30.0F), encode_bf16(-30.0F), encode_bf16(7.0F), encode_bf16(2.0F)};
  const auto out = swiglu_reference({.num_rows = 1, .width = 4, .in = in.data()});
  EXPECT_NEAR(out[0], 10.0 / (1.0 + std::exp(-10.0)) * 10.0, 1e-12);
  EXPECT_NEAR(out[1], -50.0 / (1.0 + std::exp(50.0)) * -10.0, 1e-12);
  EXPECT_EQ(out[2], 0.0);
  EXPECT_NEAR(out[3], 2.0 / (1.0 + std::exp(-1.0)), 1e-12);
}

TEST(Rope, InverseUndoesTheRotation) {
  std::vector<std::uint16_t> heads(kKvHeadDim, encode_bf16(1.0F));
  std::vector<float> table(64);
  for (std::size_t p = 0; p < 32; ++p) {
    table[2 * p] = std::cos(0.1F * static_cast<float>(p));
    table[2 * p + 1] = std::sin(0.1F * static_cast<float>(p));
  }
  const std::int32_t position = 0;
  const auto rotated = inverse_rope_reference(
      {.num_tokens = 1, .num_heads = 1, .rope = {table.data(), &position}, .heads = heads.data()});
  // (1 + i) conj(e^{i a}) = (cos a + sin a) + i (cos a - sin a); the part without position is
  // untouched.
  EXPECT_EQ(rotated[447], 1.0);
  EXPECT_NEAR(rotated[448 + 2 * 5], std::cos(0.5) + std::sin(0.5), 1e-7);
  EXPECT_NEAR(rotated[448 + 2 * 5 + 1], std::cos(0.5) - std::sin(0.5), 1e-7);
}

}  // namespace
}  // namespace fulcrum::kernels
