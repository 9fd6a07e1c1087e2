#include "model/units.h"

#include <gtest/gtest.h>

namespace fulcrum {
namespace {

using namespace fulcrum::literals;

TEST(Units, BytesOverSecondsIsARate) {
  constexpr BytesPerSecond rate = 3_GB / 2_s;
  static_assert(rate.value() == 1.5e9);
  EXPECT_EQ(rate, 1.5_GBps);
}

TEST(Units, SizeOverRateIsATime) {
  EXPECT_DOUBLE_EQ((1597_MB / 1597_GBps).value(), 1e-3);
  EXPECT_DOUBLE_EQ((2_Gflop / 1_Tflops).value(), 2e-3);
}

TEST(Units, EqualDimensionsDivideToAPlainNumber) {
  const double ratio = 6_us / 3_us;
  EXPECT_DOUBLE_EQ(ratio, 2.0);
}

TEST(Units, DecimalAndBinaryPrefixesDiffer) {
  EXPECT_DOUBLE_EQ((1_GB).value(), 1e9);
  EXPECT_DOUBLE_EQ((1_GiB).value(), 1073741824.0);
  EXPECT_LT(1_MB, 1_MiB);
}

TEST(Units, IntensityTimesBandwidthIsARateOfArithmetic) {
  const FlopPerByte intensity = 8_flop / 2_B;
  const FlopPerSecond attained = intensity * 10_GBps;
  EXPECT_DOUBLE_EQ(attained.value(), 40e9);
}

TEST(Units, SumsAndScalingKeepTheDimension) {
  Bytes total = 1_MB + 500_kB;
  total += 1_MB;
  total -= 500_kB;
  EXPECT_EQ(total * 2.0, 4_MB);
  EXPECT_EQ(0.5 * total, 1_MB);
  EXPECT_EQ(-total + total, Bytes(0.0));
}

}  // namespace
}  // namespace fulcrum
