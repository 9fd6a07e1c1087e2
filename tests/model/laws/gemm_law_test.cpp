#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "model/laws/gemm.h"
#include "model/laws/gemm_structures.h"

namespace fulcrum {
namespace {

namespace g = gemm_structure;

/// Round figures so that times can be worked out by hand: an SM does 1e12 flop/s.
LawDevice round_device() {
  LawDevice d;
  d.num_sms = 100.0;
  d.sm_clock_hertz = 1e9;
  d.dram_bandwidth_bytes_per_second = 1e12;
  d.l2_bytes = 50e6;
  d.peak_flop_per_second.fill(100e12);
  return d;
}

/// Start values with every term off that a hand calculation would have to carry along.
GemmLaw<double> bare_law(const GemmStructure& structure) {
  const auto infos = gemm_parameters(structure);
  std::array<double, kNumGemmParameters> p{};
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = infos[i].start;
  GemmLaw<double> law = GemmLaw<double>::from(std::span<const double, kNumGemmParameters>(p));
  law.launch_floor_seconds = 3e-6;
  law.prologue_seconds = 0.0;
  law.compute_efficiency = 1.0;
  law.iteration_floor_seconds = 0.0;
  law.iteration_overhead_seconds = 0.0;
  law.l2_bandwidth_ratio = 1e6;
  law.dram_efficiency = 1.0;
  law.activation_bandwidth_ratio = 1e6;
  law.throttle_slope = 0.0;
  law.tail_fraction = 1.0;
  law.overhang_seconds = 0.0;
  law.quantise_bandwidth_ratio = 1e6;
  law.quantise_row_seconds = 0.0;
  law.quantise_column_seconds = 0.0;
  return law;
}

GemmLaunch fp8_launch(double m, double n, double k) {
  GemmLaunch launch;
  launch.m = m;
  launch.n = n;
  launch.k = k;
  launch.compute = NumberFormat::kFp8;
  launch.weight_bits = 8.0;
  return launch;
}

TEST(GemmLaw, OneWaveOfPaddedTilesTakesOneTilesComputeTime) {
  // n = 1280 -> 10 tiles of 128x128 on 100 SMs: one wave. k = 1280 -> 10 iterations of 128, each
  // 2*128*128*128 flop = 4.194304e6 flop at 1e12 flop/s = 4.194304 us. Rows 2..128 are padding.
  const GemmStructure& s = g::kCutlassFp8Sm120;
  GemmLaunch launch = fp8_launch(1, 1280, 1280);
  launch.weight_working_set_bytes = 0.0;  // all in L2: DRAM takes no time
  const double t = gemm_seconds(bare_law(s), s, launch, round_device());
  EXPECT_NEAR(t, 3e-6 + 41.94304e-6, 1e-10);
}

TEST(GemmLaw, ALastPartialWaveCostsItsTailFraction) {
  // n = 128 * 150 -> 150 tiles on 100 SMs: 1.5 full, 2 waves; with tail 0.4 paid 1.5 + 0.5*0.4.
  const GemmStructure& s = g::kCutlassFp8Sm120;
  GemmLaw<double> law = bare_law(s);
  law.tail_fraction = 0.4;
  GemmLaunch launch = fp8_launch(128, 128 * 150, 128);
  launch.weight_working_set_bytes = 0.0;
  EXPECT_NEAR(gemm_seconds(law, s, launch, round_device()), 3e-6 + 1.7 * 4.194304e-6, 1e-10);
}

TEST(GemmLaw, ColdWeightsCannotBeatTheMemory) {
  // 1e9 weight bytes at 1e12 B/s: 1 ms. Compute: ceil(7813/100) = 79 waves x 1000 x 4.19 us / ...
  // is larger here, so compare against the bound only.
  for (const GemmStructure* s : kGemmStructures) {
    const GemmLaunch launch = fp8_launch(16, 65536, 16384);
    const double bytes = launch.n * launch.k * launch.weight_bits / 8.0;
    EXPECT_GE(gemm_seconds(bare_law(*s), *s, launch, round_device()), bytes / 1e12) << s->name;
  }
}

TEST(GemmLaw, WeightsThatStayInL2AreFasterThanColdOnesAndTheStepIsMonotone) {
  const GemmStructure& s = g::kCublasSm90;
  const GemmLaw<double> law = bare_law(s);
  GemmLaunch launch = fp8_launch(1, 4096, 8192);
  double previous = 0.0;
  for (double share = 0.1; share < 4.0; share += 0.05) {
    launch.weight_working_set_bytes = share * round_device().l2_bytes;
    const double t = gemm_seconds(law, s, launch, round_device());
    EXPECT_GE(t, previous * (1.0 - 1e-12)) << share;
    previous = t;
  }
  launch.weight_working_set_bytes = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(gemm_seconds(law, s, launch, round_device()), previous);
}

TEST(GemmLaw, DeepGemmsBlockNIsTheNarrowestThatKeepsTheWaves) {
  // Brute force over the library's own candidates: fewest waves, then fullest last wave, then the
  // narrowest tile.
  const GemmStructure& s = g::kDeepGemmTrtllmSm90;
  for (double n : {128.0, 768.0, 2048.0, 4096.0, 7168.0, 24576.0, 65536.0}) {
    for (double tiles_m : {1.0, 2.0, 6.0}) {
      double best_n = 0.0, best_waves = 0.0, best_blocks = 0.0;
      for (double bn = 16.0; bn <= 128.0; bn += 8.0) {
        const double blocks = tiles_m * std::ceil(n / bn);
        const double waves = std::ceil(blocks / 132.0);
        if (best_n == 0.0 || waves < best_waves || (waves == best_waves && blocks > best_blocks)) {
          best_n = bn;
          best_waves = waves;
          best_blocks = blocks;
        }
      }
      const double chosen = gemm_detail::fewest_waves_block_n(s, 128.0, tiles_m, n, 132.0);
      EXPECT_EQ(tiles_m * std::ceil(n / chosen), best_blocks) << n << " x " << tiles_m;
    }
  }
}

TEST(GemmLaw, MoreOfAResourceIsNeverSlower) {
  // Structures whose tile width does not depend on the device; with "fewest waves" another SM can
  // move a shape to a tile that is slower, as in the library.
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> log_n(std::log(64.0), std::log(65536.0));
  std::uniform_real_distribution<double> log_m(0.0, std::log(1024.0));
  for (const GemmStructure* s : kGemmStructures) {
    const GemmLaw<double> law = bare_law(*s);
    for (int i = 0; i < 300; ++i) {
      const GemmLaunch launch =
          fp8_launch(std::round(std::exp(log_m(random))), std::round(std::exp(log_n(random))),
                     std::round(std::exp(log_n(random))));
      const double base = gemm_seconds(law, *s, launch, round_device());
      ASSERT_TRUE(std::isfinite(base) && base > 0.0);
      LawDevice more = round_device();
      more.dram_bandwidth_bytes_per_second *= 1.5;
      EXPECT_LE(gemm_seconds(law, *s, launch, more), base * (1.0 + 1e-12)) << s->name;
      more = round_device();
      for (double& peak : more.peak_flop_per_second) peak *= 1.5;
      EXPECT_LE(gemm_seconds(law, *s, launch, more), base * (1.0 + 1e-12)) << s->name;
    }
  }
}

TEST(GemmLaw, TheChosenPlanIsTheFastestOfItsMenu) {
  // With one tile forced at a time, no member of the menu beats the plan.
  const GemmStructure& s = g::kCublasSm120;
  const GemmLaw<double> law = bare_law(s);
  for (double m : {2.0, 16.0, 33.0, 200.0, 1024.0}) {
    const GemmLaunch launch = fp8_launch(m, 4096, 4096);
    const double chosen = gemm_seconds(law, s, launch, round_device());
    for (std::size_t i = 0; i < s.num_tiles; ++i) {
      GemmStructure one = s;
      one.tiles[0] = s.tiles[i];
      one.num_tiles = 1;
      EXPECT_LE(chosen, gemm_seconds(law, one, launch, round_device()) * (1.0 + 1e-12));
    }
  }
}

TEST(GemmLaw, TheResidualStaysInsideItsBound) {
  GemmStructure s = g::kCublasSm90;
  GemmLaw<double> law = bare_law(s);
  const GemmLaunch launch = fp8_launch(1, 65536, 65536);
  s.has_residual = false;
  const double physical = gemm_seconds(law, s, launch, round_device());
  s.has_residual = true;
  law.residual.fill(0.3);
  const double up = gemm_seconds(law, s, launch, round_device());
  law.residual.fill(-0.3);
  const double down = gemm_seconds(law, s, launch, round_device());
  EXPECT_LE(std::abs(std::log(up / physical)), kGemmResidualBound + 1e-12);
  EXPECT_LE(std::abs(std::log(down / physical)), kGemmResidualBound + 1e-12);
}

TEST(GemmLaw, StructuresHoldTermsTheyDoNotHave) {
  for (const GemmStructure* s : kGemmStructures) {
    const auto infos = gemm_parameters(*s);
    int num_free = 0;
    for (const ParameterInfo& info : infos) {
      EXPECT_LE(info.lower, info.start) << s->name << " " << info.name;
      EXPECT_LE(info.start, info.upper) << s->name << " " << info.name;
      num_free += info.lower < info.upper ? 1 : 0;
    }
    EXPECT_GE(num_free, 10) << s->name;
    EXPECT_LE(num_free, 36) << s->name;
  }
}

/// Launches of one DeepSeek-V4-Flash forward at TP2 that run as block-FP8 GEMMs (43 layers, 21 of
/// them with an indexer): wqkv_a, wq_b, wo_b, shared gate_up, shared down, indexer wq_b.
struct Site {
  double count, n, k;
};
constexpr Site kTp2Sites[] = {{43, 1536, 4096}, {43, 16384, 1024}, {43, 4096, 4096},
                              {43, 2048, 4096}, {43, 4096, 1024},  {21, 8192, 1024}};

TEST(GemmLaw, TritonBlockGemmReproducesThePublishedMeanOf236Launches) {
  // jasl/vllm-ds4-sm120-harness, 2026-05-11: 30208 launches of _w8a8_triton_block_scaled_mm in 64
  // one-token steps on 2 GPUs = 236 a step, mean 14.46 us (RTX PRO 6000 Workstation).
  // hfyeomans/deepseek-v4-flash-nvfp4-tp2: 236 a six-token step, mean 13.371 us (Max-Q).
  // One efficiency cannot meet both (0.74 and 0.96 would); 0.83 is within 10 % of each.
  LawDevice workstation = round_device();
  workstation.num_sms = 188.0;
  workstation.dram_bandwidth_bytes_per_second = 1792e9;
  workstation.peak_flop_per_second.fill(1007.6e12);
  LawDevice max_q = workstation;
  max_q.peak_flop_per_second.fill(877.8e12);
  const GemmStructure& s = g::kTritonBlockFp8;
  GemmLaw<double> law = bare_law(s);
  law.launch_floor_seconds = 1.5e-6;
  law.prologue_seconds = 0.5e-6;
  law.compute_efficiency = 0.83;
  law.dram_efficiency = 0.9;
  const auto mean_seconds = [&](const LawDevice& device, double tokens) {
    double sum = 0.0, count = 0.0;
    for (const Site& site : kTp2Sites) {
      sum += site.count * gemm_seconds(law, s, fp8_launch(tokens, site.n, site.k), device);
      count += site.count;
    }
    EXPECT_EQ(count, 236.0);
    return sum / count;
  };
  EXPECT_NEAR(mean_seconds(workstation, 1.0) / 14.46e-6, 1.0, 0.10);
  EXPECT_NEAR(mean_seconds(max_q, 6.0) / 13.371e-6, 1.0, 0.10);
}

}  // namespace
}  // namespace fulcrum
