// Hand-derived times of the attention and indexer laws, and what must hold for any shape.
#include <gtest/gtest.h>

#include <cmath>

#include "model/laws/attention_module.h"

namespace fulcrum {
namespace {

LawDevice device() {
  LawDevice d;
  d.num_sms = 100.0;
  d.sm_clock_hertz = 1e9;
  d.dram_bandwidth_bytes_per_second = 1e12;
  d.l2_bytes = 100e6;
  d.peak_flop_per_second = {1e13, 1e14, 4e14, 8e14, 16e14};
  return d;
}

AttentionLaunch rows(double tokens, double live, double padded) {
  return {.tokens = tokens,
          .heads = 64.0,
          .window_rows = live,
          .padded_window_rows = padded,
          .row_bytes = 584.0};
}

TEST(RowLoopAttention, WavesOfTokenHeadPairsWalkThePaddedRows) {
  const RowLoopAttentionLaw<double> law{1e-6, 500.0, 0.25};
  // 3 tokens x 64 heads = 192 CTAs on 100 SMs: 2 waves; (2 + 0.25) x 1000 rows x 500 ns + 1 us.
  EXPECT_NEAR(row_loop_attention_seconds(law, rows(3.0, 10.0, 1000.0), device()), 1.126e-3, 1e-12);
}

TEST(RowLoopAttention, TimeStepsWithBatchAndIgnoresTheContext) {
  const RowLoopAttentionLaw<double> law{1e-6, 500.0, 0.25};
  const auto at = [&](double tokens, double live) {
    return row_loop_attention_seconds(law, rows(tokens, live, 1000.0), device());
  };
  EXPECT_EQ(at(1.0, 1.0), at(1.0, 900.0));
  EXPECT_LT(at(1.0, 1.0), at(2.0, 1.0));  // 64 and 128 CTAs: one wave, then two
  EXPECT_EQ(at(2.0, 1.0), at(3.0, 1.0));  // 192 CTAs are still two waves
}

TEST(SplitKAttention, TimeFollowsLiveRowsAndNotPadding) {
  const SplitKAttentionLaw<double> law{0.0, 0.5, 2.0, 1.0};
  // FLOP: 4 x 64 x 100 x 2048 = 52.4288 M at 2e14/s = 0.262144 us; queries: 4 x 64 x 512 x 2 B x 2
  // passes = 524288 B at 1e12 = 0.524288 us; rows: 4 x 100 x 584 B = 0.2336 us.
  EXPECT_NEAR(split_k_attention_seconds(law, rows(4.0, 100.0, 1e6), device()),
              0.262144e-6 + 0.524288e-6 + 0.2336e-6, 1e-15);
}

ContextScanLaunch scan(double tokens, double live, double padded) {
  return {.tokens = tokens, .keys = live, .padded_keys = padded};
}

TEST(DenseScan, CostFollowsTheConfiguredContext) {
  const DenseScanLaw<double> law{0.0, 1000.0, 0.5};
  const double small = dense_scan_seconds(law, scan(1.0, 10.0, 1e6), device());
  EXPECT_EQ(small, dense_scan_seconds(law, scan(1.0, 9e5, 1e6), device()));
  // 256 MB of logits have left a 100 MB cache: the whole kilobyte a key.
  EXPECT_NEAR(small, 1e-3, 1e-6);
  // A tenth of the context: 25.6 MB of logits stay, half the traffic is saved.
  EXPECT_NEAR(dense_scan_seconds(law, scan(1.0, 10.0, 1e5), device()), 0.5e-4, 1e-7);
}

TEST(SplitScan, MeanCeilIsExactOnWholeSteps) {
  EXPECT_DOUBLE_EQ(mean_ceil(0.0, 256.0, 256.0), 1.0);
  EXPECT_DOUBLE_EQ(mean_ceil(0.0, 512.0, 256.0), 1.5);
  EXPECT_DOUBLE_EQ(mean_ceil(300.0, 300.0, 256.0), 2.0);
}

TEST(SplitScan, UnitsAreDealtToTheSmsInWholeRounds) {
  const SplitScanLaw<double> law{1e-6, 1000.0, 100.0, 0.0, 0.0};
  // 150 tokens with one unit each on 100 SMs: 2 rounds of 1 us, 1.5 tokens an SM of 0.1 us.
  EXPECT_NEAR(split_scan_seconds(law, scan(150.0, 200.0, 200.0), 4.0, device()), 3.15e-6, 1e-12);
}

TEST(TopK, CostsNothingUntilKeysExceedK) {
  EXPECT_EQ(top_k_seconds(8e-5, 16.0, 512.0, 512.0, device()), 0.0);
  EXPECT_DOUBLE_EQ(top_k_seconds(8e-5, 16.0, 768.0, 512.0, device()), 4e-5);
  EXPECT_DOUBLE_EQ(top_k_seconds(8e-5, 16.0, 1e5, 512.0, device()), 8e-5);
  EXPECT_DOUBLE_EQ(top_k_seconds(8e-5, 101.0, 1e5, 512.0, device()), 16e-5);  // a second round
}

AttentionModuleLaunch module_launch(double tokens, double context) {
  AttentionModuleLaunch launch;
  launch.projections[0] = {.m = tokens, .n = 4096.0, .k = 4096.0};
  launch.num_projections = 1;
  launch.tokens = tokens;
  launch.context_tokens = context;
  launch.attention = rows(tokens, std::min(context, 640.0), 640.0);
  launch.has_indexer = true;
  launch.scan = scan(tokens, context / 4.0, 65536.0);
  launch.top_k = 512.0;
  return launch;
}

template <class Law, std::size_t N>
Law at_start(const std::array<ParameterInfo, N>& infos) {
  std::array<double, N> p{};
  for (std::size_t i = 0; i < N; ++i) p[i] = infos[i].start;
  return Law::from(std::span<const double, N>(p));
}

TEST(AttentionModule, TotalIsTheSumOfTheKernels) {
  const auto fallback = at_start<FallbackModuleLaw<double>>(kFallbackModuleParameters);
  const auto split_k = at_start<SplitKModuleLaw<double>>(kSplitKModuleParameters);
  for (const auto& t : {fallback_module_seconds(fallback, module_launch(8.0, 8192.0), device()),
                        split_k_module_seconds(split_k, module_launch(8.0, 8192.0), device())}) {
    EXPECT_DOUBLE_EQ(t.total(), t.other + t.projections + t.attention + t.scan + t.top_k);
    EXPECT_GT(t.projections, 0.0);
    EXPECT_GT(t.attention, 0.0);
    EXPECT_GT(t.scan, 0.0);
  }
}

TEST(AttentionModule, MoreTokensAndContextAreNeverFaster) {
  const auto fallback = at_start<FallbackModuleLaw<double>>(kFallbackModuleParameters);
  const auto split_k = at_start<SplitKModuleLaw<double>>(kSplitKModuleParameters);
  for (double tokens = 1.0; tokens <= 512.0; tokens *= 2.0) {
    for (double context = 64.0; context <= 65536.0; context *= 4.0) {
      const auto small = module_launch(tokens, context);
      for (const auto& large :
           {module_launch(2.0 * tokens, context), module_launch(tokens, 4.0 * context)}) {
        EXPECT_LE(fallback_module_seconds(fallback, small, device()).total(),
                  fallback_module_seconds(fallback, large, device()).total() * (1.0 + 1e-12));
        EXPECT_LE(split_k_module_seconds(split_k, small, device()).total(),
                  split_k_module_seconds(split_k, large, device()).total() * (1.0 + 1e-12));
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum
