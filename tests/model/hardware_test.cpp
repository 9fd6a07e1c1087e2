#include "model/hardware.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "model/io/load_hardware.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

std::vector<Hardware> all_hardware() {
  std::vector<Hardware> all;
  for (const auto& entry : std::filesystem::directory_iterator(test::data_path("hardware"))) {
    all.push_back(io::load_hardware(entry.path().string()));
    EXPECT_EQ(all.back().name, entry.path().stem().string());
  }
  return all;
}

TEST(HardwareFiles, EightGpusAreDescribed) { EXPECT_EQ(all_hardware().size(), 8u); }

TEST(HardwareFiles, TensorPeakIsSmsTimesClockTimesFlopPerCycle) {
  // Tolerance: datasheets round the clock (Max-Q 2288 MHz) or the rate (GB10 62.5 at 2.5 GHz).
  constexpr double kRounding = 0.02;
  for (const Hardware& gpu : all_hardware()) {
    const double clock_mhz =
        gpu.tensor_clock_mhz ? gpu.tensor_clock_mhz->value : gpu.sm_clock_mhz.value;
    const double computed_tflop =
        gpu.num_sms.value * clock_mhz * gpu.tensor_flop_per_cycle_per_sm_bf16.value * 1e-6;
    const auto& stated = gpu.peak_dense_tflop_per_s[static_cast<int>(NumberFormat::kBf16)];
    ASSERT_TRUE(stated) << gpu.name;
    EXPECT_NEAR(computed_tflop / stated->value, 1.0, kRounding) << gpu.name;
  }
}

TEST(HardwareFiles, Fp32PeakIsLanesTimesTwoTimesClock) {
  constexpr double kRounding = 0.03;  // RTX PRO 6000 Server quotes 120 at a clock above 2430 MHz
  for (const Hardware& gpu : all_hardware()) {
    const double computed_tflop =
        gpu.num_sms.value * gpu.fp32_lanes_per_sm.value * 2.0 * gpu.sm_clock_mhz.value * 1e-6;
    const auto& stated = gpu.peak_dense_tflop_per_s[static_cast<int>(NumberFormat::kFp32)];
    EXPECT_NEAR(computed_tflop / stated->value, 1.0, kRounding) << gpu.name;
  }
}

TEST(HardwareFiles, MemoryBandwidthIsBusTimesRate) {
  int checked = 0;
  for (const Hardware& gpu : all_hardware()) {
    if (!gpu.memory_bus_bits) continue;
    ASSERT_TRUE(gpu.memory_data_rate_gbit_per_s_per_pin) << gpu.name;
    const double computed_gb =
        gpu.memory_bus_bits->value * gpu.memory_data_rate_gbit_per_s_per_pin->value / 8.0;
    EXPECT_NEAR(computed_gb / gpu.memory_bandwidth_gb_per_s.value, 1.0, 2e-3) << gpu.name;
    ++checked;
  }
  EXPECT_GE(checked, 5);
}

TEST(HardwareFiles, NarrowerFormatsAreNeverSlower) {
  for (const Hardware& gpu : all_hardware()) {
    const LawDevice device = law_device(gpu, nullptr);
    for (std::size_t f = 1; f < kNumNumberFormats; ++f) {
      // 0.1 %: two datasheet figures of one rate are rounded apart.
      EXPECT_GE(device.peak_flop_per_second[f], 0.999 * device.peak_flop_per_second[f - 1])
          << gpu.name;
    }
  }
}

TEST(HardwareFiles, EveryNumberHasASource) {
  for (const Hardware& gpu : all_hardware()) {
    EXPECT_FALSE(gpu.memory_bandwidth_gb_per_s.source.empty()) << gpu.name;
    EXPECT_FALSE(gpu.l2_mib.source.empty()) << gpu.name;
    for (const Link& link : gpu.links) {
      EXPECT_FALSE(link.bandwidth_gb_per_s_per_direction.source.empty()) << gpu.name;
    }
  }
}

}  // namespace
}  // namespace fulcrum
