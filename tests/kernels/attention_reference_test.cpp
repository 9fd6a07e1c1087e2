// The references that the attention kernels are checked against, and the numbers they plan with.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/attention/kv_row_reference.h"
#include "kernels/attention/sparse_mla_reference.h"
#include "kernels/common/formats.h"

namespace fulcrum::kernels {
namespace {

constexpr int kRowsPerPageLog2 = 2;

struct Pool {
  explicit Pool(int num_pages)
      : bytes(static_cast<std::size_t>(num_pages * kv_page_stride_bytes(kRowsPerPageLog2))),
        pool{.pages = bytes.data(),
             .rows_per_page_log2 = kRowsPerPageLog2,
             .page_stride_bytes = kv_page_stride_bytes(kRowsPerPageLog2)} {}
  std::vector<std::uint8_t> bytes;
  KvPool pool;
};

std::array<float, kKvHeadDim> filled(float value) {
  std::array<float, kKvHeadDim> values;
  values.fill(value);
  return values;
}

TEST(KvRow, PageOfFourRowsHoldsDataThenScalesAndIsPadded) {
  // 4 x 584 = 2336 bytes, padded to the next multiple of 576: 5 x 576 = 2880.
  EXPECT_EQ(kv_page_stride_bytes(2), 2880);
  const Pool p(2);
  EXPECT_EQ(kv_data_offset(p.pool, 6), 2880 + 2 * 576);
  EXPECT_EQ(kv_scale_offset(p.pool, 6), 2880 + 4 * 576 + 2 * 8);
}

TEST(KvRow, EncodingAndDecodingStaysWithinHalfAnUlpOfTheFormat) {
  const Pool p(2);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  for (int row = 0; row < 8; ++row) {
    std::array<float, kKvHeadDim> values;
    for (float& value : values) value = normal(random);
    encode_kv_row(values, p.pool, row);
    const auto decoded = decode_kv_row(p.pool, row);
    for (int d = 0; d < kKvHeadDim; ++d) {
      // E4M3 has three fraction bits (half an ulp is 2^-4 of the value), BF16 seven; below the
      // normal range of the scaled value E4M3 steps by 2^-9 of the scale, which is at most amax /
      // 224 < 2^-3.
      const double bound = d < kKvFp8Values ? std::max(0x1p-4 * std::fabs(values[d]), 0x1p-13)
                                            : 0x1p-8 * std::fabs(values[d]);
      EXPECT_NEAR(decoded[d], values[d], bound) << row << " " << d;
    }
  }
}

TEST(KvRow, RowsOfAPageDoNotTouchEachOther) {
  const Pool p(1);
  encode_kv_row(filled(1.0F), p.pool, 0);
  encode_kv_row(filled(2.0F), p.pool, 1);
  encode_kv_row(filled(4.0F), p.pool, 3);
  EXPECT_EQ(decode_kv_row(p.pool, 0)[0], 1.0);
  EXPECT_EQ(decode_kv_row(p.pool, 1)[511], 2.0);
  EXPECT_EQ(decode_kv_row(p.pool, 2)[0], 0.0);
  EXPECT_EQ(decode_kv_row(p.pool, 3)[447], 4.0);
}

struct TwoRowProblem {
  TwoRowProblem() : window(1), compressed(1), query(kKvHeadDim, encode_bf16(0.0F)) {
    encode_kv_row(filled(1.0F), window.pool, 2);
    encode_kv_row(filled(3.0F), compressed.pool, 0);
    problem = {.shape = {.num_tokens = 1, .num_heads = 1, .window_width = 2, .compressed_width = 2},
               .query = query.data(),
               .window = window.pool,
               .compressed = compressed.pool,
               .window_rows = window_rows.data(),
               .window_counts = &window_count,
               .compressed_rows = compressed_rows.data(),
               .compressed_counts = &compressed_count,
               .sink = &sink,
               .softmax_scale = 1.0F};
  }
  Pool window;
  Pool compressed;
  std::vector<std::uint16_t> query;
  std::vector<std::int32_t> window_rows = {2, -1};
  std::vector<std::int32_t> compressed_rows = {0, 0};
  std::int32_t window_count = 2;
  std::int32_t compressed_count = 1;
  float sink = -std::numeric_limits<float>::infinity();
  SparseMlaProblem problem;
};

TEST(SparseMlaReference, EqualScoresAverageTheRowsOfWindowAndSelection) {
  // All scores are zero: (1 + 3) / 2. The hole in the window and the slot beyond the count are not
  // rows.
  const TwoRowProblem p;
  const auto result = sparse_mla_reference(p.problem);
  EXPECT_DOUBLE_EQ(result.out[0], 2.0);
  EXPECT_DOUBLE_EQ(result.out[511], 2.0);
}

TEST(SparseMlaReference, SinkTakesItsShareOfTheSoftmax) {
  // exp(0) twice and exp(sink) = 2: (1 + 3) / 4.
  TwoRowProblem p;
  p.sink = std::log(2.0F);
  EXPECT_NEAR(sparse_mla_reference(p.problem).out[7], 1.0, 1e-7);
}

TEST(SparseMlaReference, ScoresWeighTheRowsExponentially) {
  // q . k = 512 q_i k: with q_i = 2^-10, scores are 0.5 and 1.5; weight of the second row e / (1 +
  // e).
  TwoRowProblem p;
  std::fill(p.query.begin(), p.query.end(), encode_bf16(0x1p-10F));
  const double weight = std::exp(1.0) / (1.0 + std::exp(1.0));
  EXPECT_NEAR(sparse_mla_reference(p.problem).out[100], 1.0 + 2.0 * weight, 1e-12);
}

TEST(SparseMlaReference, NoRowAndNoSinkGiveZero) {
  TwoRowProblem p;
  p.window_count = 0;
  p.compressed_count = 0;
  EXPECT_EQ(sparse_mla_reference(p.problem).out[0], 0.0);
}

TEST(SparseMlaPlan, BlocksFillTheDeviceOnceAndNeverMoreThanOnce) {
  for (const int heads : {16, 32, 64, 128}) {
    for (int tokens = 1; tokens <= 256; tokens *= 2) {
      const SparseMlaShape shape{
          .num_tokens = tokens, .num_heads = heads, .window_width = 128, .compressed_width = 512};
      const SparseMlaPlan plan = plan_sparse_mla(shape, 132, 232448, 233472);
      ASSERT_GT(plan.heads_per_block, 0);
      EXPECT_EQ(heads % plan.heads_per_block, 0);
      EXPECT_GE(plan.num_splits, 1);
      EXPECT_LE(plan.num_splits, 20);  // (128 + 512) / 32 tiles
      const int blocks = tokens * (heads / plan.heads_per_block);
      if (plan.num_splits > 1) {
        EXPECT_LE(blocks * plan.num_splits, 2 * 132);
      }
    }
  }
}

TEST(SparseMlaPlan, HeadsShareRowsOnceTilesAloneCouldFillTheDevice) {
  // 20 tiles of 32 rows: 7 tokens x 20 = 140 blocks of 64 heads cover 132 SMs, 6 tokens do not.
  SparseMlaShape shape{
      .num_tokens = 6, .num_heads = 64, .window_width = 128, .compressed_width = 512};
  EXPECT_EQ(plan_sparse_mla(shape, 132, 232448, 233472).heads_per_block, 16);
  shape.num_tokens = 7;
  EXPECT_EQ(plan_sparse_mla(shape, 132, 232448, 233472).heads_per_block, 64);
}

TEST(SparseMlaPlan, HopperBlocksFillTheDeviceAtMostOnceAndEverySplitHasATile) {
  for (const int heads : {16, 32, 64, 128}) {
    for (int tokens = 1; tokens <= 256; tokens *= 2) {
      for (const int width : {1, 33, 512, 8192}) {
        const SparseMlaShape shape{.num_tokens = tokens,
                                   .num_heads = heads,
                                   .window_width = 128,
                                   .compressed_width = width};
        const SparseMlaPlan plan = plan_sparse_mla_sm90(shape, 132);
        ASSERT_EQ(heads % plan.heads_per_block, 0);
        const int tiles = (128 + width + 63) / 64;
        const int per_split = (tiles + plan.num_splits - 1) / plan.num_splits;
        EXPECT_GT(tiles, (plan.num_splits - 1) * per_split) << "an empty split";
        const int blocks = tokens * (heads / plan.heads_per_block);
        if (plan.num_splits > 1) {
          EXPECT_LE(blocks * plan.num_splits, (plan.heads_per_block == 64 ? 1 : 2) * 132);
        }
      }
    }
  }
}

// 640 rows are ten tiles. 64 tokens of 16 heads: two splits of five tiles leave an SM one block and
// five tiles; three splits give it 192 / 132 blocks of four, 5.8 tiles. 128 tokens: two splits, 9.7
// tiles an SM against ten.
TEST(SparseMlaPlan, HopperSplitsLeaveAnSmTheFewestTiles) {
  SparseMlaShape shape{
      .num_tokens = 64, .num_heads = 16, .window_width = 128, .compressed_width = 512};
  EXPECT_EQ(plan_sparse_mla_sm90(shape, 132).num_splits, 2);
  shape.num_tokens = 128;
  EXPECT_EQ(plan_sparse_mla_sm90(shape, 132).num_splits, 2);
  shape.num_tokens = 1;
  EXPECT_EQ(plan_sparse_mla_sm90(shape, 132).num_splits, 5);
  // One block of 64 heads fills an SM: 32 clusters of four would need 128 of its 132 places.
  shape = {.num_tokens = 32, .num_heads = 64, .window_width = 128, .compressed_width = 512};
  EXPECT_EQ(plan_sparse_mla_sm90(shape, 132).heads_per_block, 64);
  EXPECT_EQ(plan_sparse_mla_sm90(shape, 132).num_splits, 3);
}

TEST(SparseMlaPlan, SmallSharedMemoryTakesTheSmallHeadTile) {
  // sm_120: 99 KiB per block, 100 KiB per SM.
  const SparseMlaShape shape{
      .num_tokens = 4, .num_heads = 64, .window_width = 128, .compressed_width = 512};
  EXPECT_EQ(plan_sparse_mla(shape, 188, 101376, 102400).heads_per_block, 16);
  EXPECT_EQ(plan_sparse_mla(shape, 188, 48 * 1024, 102400).heads_per_block, 0);
}

TEST(SparseMlaClaim, CountsRowsOnceForSplitKAndOncePerHeadForTheRowLoop) {
  const SparseMlaShape shape{
      .num_tokens = 1, .num_heads = 64, .window_width = 128, .compressed_width = 512};
  const Claim split = sparse_mla_claim(shape, 640.0);
  // 640 rows x (584 + 4) bytes, two counts, query and output 64 x 512 x 2 bytes each, 64 sinks.
  EXPECT_DOUBLE_EQ(split.bytes, 640.0 * 588.0 + 8.0 + 2.0 * 65536.0 + 256.0);
  EXPECT_DOUBLE_EQ(split.flop, 640.0 * 64.0 * 2048.0);
  EXPECT_DOUBLE_EQ(sparse_mla_row_loop_claim(shape, 640.0).bytes - split.bytes,
                   63.0 * 640.0 * 588.0);
  // The row loop computes over the padded width: fewer valid rows do not make it cheaper.
  EXPECT_DOUBLE_EQ(sparse_mla_row_loop_claim(shape, 10.0).flop, split.flop);
}

}  // namespace
}  // namespace fulcrum::kernels
