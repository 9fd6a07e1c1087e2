#include "replay/verification.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernels/common/formats.h"

namespace fulcrum::replay {
namespace {

TEST(Verification, TheToleranceIsTightOnBothSides) {
  const std::vector<double> reference = {8.0};
  const std::vector<double> magnitude = {16.0};
  const Tolerance tolerance{.relative = 0x1p-8, .of_magnitude = 0x1p-10, .absolute = 0};
  const double bound = 8.0 * 0x1p-8 + 16.0 * 0x1p-10;  // 0.046875, exact in binary32 next to 8.
  const std::vector<float> at = {static_cast<float>(8.0 + bound)};
  EXPECT_TRUE(compare(at, reference, magnitude, tolerance, "y").passed());
  const std::vector<float> above = {std::nextafter(at[0], 9.0f)};
  const Verification failed = compare(above, reference, magnitude, tolerance, "y");
  EXPECT_FALSE(failed.passed());
  EXPECT_EQ(failed.num_failed, 1);
  EXPECT_NE(failed.worst.find("y[0]"), std::string::npos);
}

TEST(Verification, NanAndPoisonedOutputsNeverPass) {
  const std::vector<double> reference = {1.0, 2.0};
  const std::vector<float> output = {1.0f, std::numeric_limits<float>::quiet_NaN()};
  const Tolerance loose{.relative = 1e6, .of_magnitude = 0, .absolute = 1e6};
  const Verification v = compare(output, reference, {}, loose, "y");
  EXPECT_EQ(v.num_failed, 1);
  EXPECT_TRUE(std::isinf(v.worst_ratio));
  const std::vector<std::uint16_t> poisoned = {0xffff,
                                               0xffff};  // What DeviceBuffer::poison leaves.
  EXPECT_EQ(compare_bf16(poisoned, reference, {}, loose, "y").num_failed, 2);
}

TEST(Verification, RoundingToBf16StaysInsideItsOwnTolerance) {
  std::vector<double> reference;
  std::vector<std::uint16_t> output;
  for (int i = 1; i < 5000; ++i) {
    const float value = std::sin(static_cast<float>(i)) * std::ldexp(1.0f, i % 40 - 20);
    reference.push_back(value);
    output.push_back(kernels::encode_bf16(value));
  }
  const Verification v = compare_bf16(output, reference, {}, kBf16Output, "y");
  EXPECT_TRUE(v.passed()) << v.worst;
  EXPECT_GT(v.worst_ratio, 0.4);  // Half an ulp is 2^-9: the bound is within a factor of 2.5.
}

TEST(Verification, EmptyOutputsDoNotCountAsPassed) {
  EXPECT_FALSE(compare({}, {}, {}, kExact, "y").passed());
}

TEST(Verification, LengthsMustAgree) {
  const std::vector<float> output = {1};
  const std::vector<double> reference = {1, 2};
  EXPECT_THROW(compare(output, reference, {}, kExact, "y"), std::invalid_argument);
}

TEST(Verification, MergedVerdictsKeepTheWorst) {
  const std::vector<double> reference = {1.0};
  const std::vector<float> good = {1.0f};
  const std::vector<float> bad = {2.0f};
  const Verification merged =
      merge(compare(good, reference, {}, kExact, "a"), compare(bad, reference, {}, kExact, "b"));
  EXPECT_EQ(merged.num_elements, 2);
  EXPECT_EQ(merged.num_failed, 1);
  EXPECT_EQ(merged.worst.substr(0, 2), "b[");
}

}  // namespace
}  // namespace fulcrum::replay
