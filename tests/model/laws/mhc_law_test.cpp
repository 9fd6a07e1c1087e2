#include <gtest/gtest.h>

#include <cmath>

#include "model/laws/mhc.h"

namespace fulcrum {
namespace {

LawDevice round_device() {
  LawDevice d;
  d.num_sms = 100.0;
  d.sm_clock_hertz = 1e9;
  d.dram_bandwidth_bytes_per_second = 1e12;
  d.l2_bytes = 50e6;
  return d;
}

ElementwiseLaw<double> law_without_cta_term() {
  return {.launch_floor_seconds = 2e-6,
          .row_seconds = 0.0,
          .sm_bytes_per_clock = 1e9,
          .dram_efficiency = 0.8,
          .l2_bandwidth_ratio = 4.0,
          .l2_resident_fraction = 0.5,
          .l2_transition_width = 1.0,
          .tail_fraction = 1.0};
}

TEST(ElementwiseLaw, LargeTensorsStreamFromDramAndSmallOnesFromL2) {
  // 1e5 tokens x 1e4 B = 1 GB at 0.8 TB/s; 100 tokens = 1 MB at 4 TB/s.
  const auto law = law_without_cta_term();
  EXPECT_NEAR(elementwise_seconds(law, {.tokens = 1e5, .bytes_per_token = 1e4}, round_device()),
              2e-6 + 1.25e-3, 1e-9);
  EXPECT_NEAR(elementwise_seconds(law, {.tokens = 100, .bytes_per_token = 1e4}, round_device()),
              2e-6 + 0.25e-6, 1e-11);
}

TEST(ElementwiseLaw, TimeGrowsWithTokens) {
  const auto law = law_without_cta_term();
  double previous = 0.0;
  for (double tokens = 1.0; tokens < 1e6; tokens = std::ceil(tokens * 1.3)) {
    const double t =
        elementwise_seconds(law, {.tokens = tokens, .bytes_per_token = 8192}, round_device());
    EXPECT_GE(t, previous) << tokens;
    previous = t;
  }
}

TEST(MhcLaw, TwoPassesTakeTwiceTheStreamAndTheSerialPartSaturates) {
  MhcLaw<double> law{law_without_cta_term(), 1.0, 0.0, 1.0};
  law.stream.launch_floor_seconds = 0.0;
  const MhcLaunch launch{.tokens = 1e5, .hidden = 4096, .streams = 4};
  const double once = mhc_seconds(law, launch, round_device());
  law.traffic_passes = 2.0;
  EXPECT_NEAR(mhc_seconds(law, launch, round_device()) / once, 2.0, 1e-12);
  // serial: t x 1 us / (1 + t / 100) -> at most 100 us, half of it at 100 tokens.
  law.traffic_passes = 1e-9;
  law.token_seconds = 1e-6;
  law.saturation_tokens = 100.0;
  EXPECT_NEAR(mhc_seconds(law, {.tokens = 100, .hidden = 4096, .streams = 4}, round_device()),
              50e-6, 1e-10);
}

}  // namespace
}  // namespace fulcrum
