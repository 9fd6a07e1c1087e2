// Hand-derived times of the MoE laws, and what must hold for any shape.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "model/laws/moe.h"
#include "model/laws/slot_gemv.h"

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

MoeLaw<double> at_start() {
  std::array<double, MoeLaw<double>::kNumParameters> p{};
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = kMoeParameters[i].start;
  return MoeLaw<double>::from(std::span<const double, MoeLaw<double>::kNumParameters>(p));
}

MoeWork work_of(double tokens, double inter = 2048.0, double ep = 1.0) {
  MoeWork work;
  work.launch = {.tokens = tokens,
                 .hidden = 4096.0,
                 .inter = inter,
                 .top_k = 6.0,
                 .num_experts = 256.0,
                 .local_experts = 256.0 / ep,
                 .weight_bits = 4.25};
  work.routed = routed_work(work.launch);
  return work;
}

TEST(SmoothMax, IsTheLargerWhereOneDominates) {
  EXPECT_NEAR(smooth_max(1.0, 100.0), 100.0, 1e-6);
  EXPECT_NEAR(smooth_max(1.0, 1.0), std::pow(2.0, 0.25), 1e-12);
}

TEST(ResidentShare, FallsFromOneToZeroAroundTheCache) {
  EXPECT_GT(resident_share(50e6, 100e6), 0.9999);
  EXPECT_DOUBLE_EQ(resident_share(100e6, 100e6), 0.5);
  EXPECT_LT(resident_share(200e6, 100e6), 1e-4);
  EXPECT_EQ(resident_share(kNeverReused, 100e6), 0.0);
}

TEST(Moe, WeightBoundLaunchTakesItsBytesAtTheAchievedBandwidth) {
  MoeLaw<double> law = at_start();
  law.memory_efficiency = 0.5;
  law.step_cycles = law.extra_tile_cycles = law.tile_cycles = 1e-3;
  const MoeTime<double> time = moe_time(law, MoeKernelTraits{}, work_of(1.0), device());
  // Six experts of 3 x 2048 x 4096 x 4.25 / 8 B = 80.2 MB at 0.5 TB/s: 160.4 us, two thirds in up.
  EXPECT_NEAR(time.up, 2.0 / 3.0 * 160.432e-6, 1e-7);
  EXPECT_NEAR(time.down, 1.0 / 3.0 * 160.432e-6, 1e-7);
}

TEST(Moe, FewTilesAreBoundByTheLatencyOfOneKLoop) {
  MoeLaw<double> law = at_start();
  law.step_cycles = 1e6;
  law.tile_cycles = 1e-3;
  law.unhidden_share = 0.0;
  MoeKernelTraits traits;
  traits.tile = {2, 128.0, 128.0};
  // One token: 6 blocks x 32 columns = 192 tiles on 100 SMs, 0.92 beyond the first.
  law.extra_tile_cycles = 1e-3;
  const MoeTime<double> time = moe_time(law, traits, work_of(1.0), device());
  EXPECT_NEAR(time.up, 32.0 * 1e-3, 1e-6);    // 4096 / 128 steps of 1 ms
  EXPECT_NEAR(time.down, 16.0 * 1e-3, 1e-6);  // 2048 / 128
}

TEST(Moe, TileSwitchHappensAtTheFirstTokenBeyondTheExperts) {
  MoeKernelTraits traits;
  traits.switches_tile = true;
  traits.many_tile = {2, 64.0, 32.0};
  MoeLaw<double> law = at_start();
  law.memory_efficiency = 0.9;
  law.memory_efficiency_many = 0.45;
  const double before = moe_seconds(law, traits, work_of(256.0), device());
  const double after = moe_seconds(law, traits, work_of(257.0), device());
  EXPECT_GT(after / before, 1.5);
}

TEST(Moe, ResidentWeightsAreFasterThanCold) {
  MoeWork warm = work_of(1.0, 512.0);
  const double cold = moe_seconds(at_start(), MoeKernelTraits{}, warm, device());
  warm.reuse_distance_bytes = 20e6;
  EXPECT_LT(moe_seconds(at_start(), MoeKernelTraits{}, warm, device()), cold);
}

TEST(Moe, MoreOfAResourceIsNeverSlower) {
  std::mt19937_64 engine(3);
  std::uniform_real_distribution<double> exponent(0.0, 9.0);
  for (int i = 0; i < 200; ++i) {
    const MoeWork work = work_of(std::floor(std::exp2(exponent(engine))));
    LawDevice better = device();
    better.num_sms *= 1.5;
    better.sm_clock_hertz *= 1.2;
    better.dram_bandwidth_bytes_per_second *= 1.3;
    const double base = moe_seconds(at_start(), MoeKernelTraits{}, work, device());
    EXPECT_LE(moe_seconds(at_start(), MoeKernelTraits{}, work, better), base);
  }
}

TEST(Moe, MoreTokensAreNeverFasterAndTimeIsAboveTheWeightRoof) {
  double before = 0.0;
  for (double tokens = 1.0; tokens <= 1024.0; tokens *= 2.0) {
    const MoeWork work = work_of(tokens);
    const double seconds = moe_seconds(at_start(), MoeKernelTraits{}, work, device());
    EXPECT_GT(seconds, before);
    const double bytes = work.routed.active_experts * 3.0 * 2048.0 * 4096.0 * 4.25 / 8.0;
    EXPECT_GT(seconds, bytes / 1e12);
    before = seconds;
  }
}

TEST(Moe, PartsSumToTheTotal) {
  const MoeTime<double> t = moe_time(at_start(), MoeKernelTraits{}, work_of(16.0), device());
  EXPECT_DOUBLE_EQ(t.total(), t.fixed + t.up + t.down + t.activations);
}

TEST(SlotGemv, ProgramsOfAllSlotsQueueOnTheSms) {
  const SlotGemvLaw<double> law{1e-6, 1.0, 1.0, 100.0};
  const MoeLaunch launch = work_of(16.0, 512.0).launch;
  // 96 slots; up: N 1024 = 16 programs each, 16 waves x 4096 x 100 ns = 6.5536 ms; down: N 4096 =
  // 64 each, 62 waves x 512 x 100 ns = 3.1744 ms; memory is a twentieth of either.
  EXPECT_NEAR(slot_gemv_seconds(law, launch, 80.0, device()), 2e-6 + 6.5536e-3 + 3.1744e-3, 1e-6);
}

TEST(SlotGemv, RepeatsThatComeFromL2CostLess) {
  const MoeLaunch launch = work_of(64.0).launch;
  const SlotGemvLaw<double> dram{1e-6, 0.01, 1.0, 1.0};
  const SlotGemvLaw<double> cached{1e-6, 0.01, 3.0, 1.0};
  const double distinct = expected_distinct_experts(launch);
  EXPECT_LT(slot_gemv_seconds(cached, launch, distinct, device()),
            slot_gemv_seconds(dram, launch, distinct, device()));
}

}  // namespace
}  // namespace fulcrum
