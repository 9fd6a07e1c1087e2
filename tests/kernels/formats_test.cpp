#include "kernels/common/formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fulcrum::kernels {
namespace {

// Values written out from the format definitions: (-1)^s * 2^(e-7) * (1 + m/8), subnormal m/8 *
// 2^-6.
TEST(Formats, E4m3DecodesTheValuesOfItsDefinition) {
  EXPECT_EQ(decode_e4m3(0x00), 0.0f);
  EXPECT_TRUE(std::signbit(decode_e4m3(0x80)));
  EXPECT_EQ(decode_e4m3(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(decode_e4m3(0x07), std::ldexp(7.0f, -9));
  EXPECT_EQ(decode_e4m3(0x08), std::ldexp(1.0f, -6));
  EXPECT_EQ(decode_e4m3(0x38), 1.0f);
  EXPECT_EQ(decode_e4m3(0xb9), -1.125f);
  EXPECT_EQ(decode_e4m3(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(decode_e4m3(0x7f)));
  EXPECT_TRUE(std::isnan(decode_e4m3(0xff)));
  for (int code = 0; code < 0x7f; ++code) {
    const int exponent = code >> 3;
    const double mantissa = (code & 7) / 8.0;
    const double expected =
        exponent == 0 ? std::ldexp(mantissa, -6) : std::ldexp(1.0 + mantissa, exponent - 7);
    EXPECT_EQ(static_cast<double>(decode_e4m3(static_cast<std::uint8_t>(code))), expected) << code;
  }
}

TEST(Formats, E4m3RoundTripsEveryCode) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    EXPECT_EQ(encode_e4m3(decode_e4m3(byte)), byte) << code;
  }
}

TEST(Formats, E4m3EncodesToTheNearestCodeWithTiesToEven) {
  for (int code = 0; code < 0x7e; ++code) {
    const auto low = static_cast<std::uint8_t>(code);
    const auto high = static_cast<std::uint8_t>(code + 1);
    const float middle = 0.5f * (decode_e4m3(low) + decode_e4m3(high));
    EXPECT_EQ(encode_e4m3(middle), (code & 1) == 0 ? low : high) << code;
    EXPECT_EQ(encode_e4m3(std::nextafter(middle, 0.0f)), low) << code;
    EXPECT_EQ(encode_e4m3(std::nextafter(middle, 1e9f)), high) << code;
    EXPECT_EQ(encode_e4m3(-middle), (code & 1) == 0 ? (low | 0x80) : (high | 0x80)) << code;
  }
}

TEST(Formats, E4m3SaturatesWhatIsTooLargeAndKeepsNan) {
  EXPECT_EQ(encode_e4m3(449.0f), 0x7e);
  EXPECT_EQ(encode_e4m3(-1e30f), 0xfe);
  EXPECT_EQ(encode_e4m3(std::numeric_limits<float>::infinity()), 0x7e);
  EXPECT_EQ(encode_e4m3(std::numeric_limits<float>::quiet_NaN()) & 0x7f, 0x7f);
}

TEST(Formats, E2m1HasItsSixteenValuesAndRoundsTiesToEven) {
  const float magnitudes[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  for (int code = 0; code < 8; ++code) {
    const auto nibble = static_cast<std::uint8_t>(code);
    EXPECT_EQ(decode_e2m1(nibble), magnitudes[code]);
    EXPECT_EQ(decode_e2m1(static_cast<std::uint8_t>(code | 8)), -magnitudes[code]);
    EXPECT_EQ(encode_e2m1(magnitudes[code]), nibble);
    if (code == 7) continue;
    const float middle = 0.5f * (magnitudes[code] + magnitudes[code + 1]);
    EXPECT_EQ(encode_e2m1(middle), (code & 1) == 0 ? code : code + 1);
    EXPECT_EQ(encode_e2m1(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(encode_e2m1(std::nextafter(middle, 9.0f)), code + 1);
  }
  EXPECT_EQ(encode_e2m1(100.0f), 7);
}

TEST(Formats, E8m0IsAPowerOfTwoAndItsCeilingNeverUndershoots) {
  EXPECT_EQ(decode_e8m0(127), 1.0f);
  EXPECT_EQ(decode_e8m0(0), std::ldexp(1.0f, -127));
  EXPECT_EQ(decode_e8m0(254), std::ldexp(1.0f, 127));
  EXPECT_TRUE(std::isnan(decode_e8m0(255)));
  for (int code = 0; code < 255; ++code) {
    const float value = decode_e8m0(static_cast<std::uint8_t>(code));
    EXPECT_EQ(encode_e8m0_ceil(value), code);
    if (code < 254) {
      EXPECT_EQ(encode_e8m0_ceil(std::nextafter(value, 3e38f)), code + 1);
    }
  }
}

TEST(Formats, Bf16RoundsToNearestEven) {
  EXPECT_EQ(encode_bf16(1.0f), 0x3f80);
  EXPECT_EQ(encode_bf16(1.0f + std::ldexp(1.0f, -8)), 0x3f80);  // Tie, even below.
  EXPECT_EQ(encode_bf16(1.0f + std::ldexp(3.0f, -8)), 0x3f82);  // Tie, even above.
  EXPECT_EQ(encode_bf16(1.0f + std::ldexp(1.01f, -8)), 0x3f81);
  EXPECT_EQ(decode_bf16(0xc000), -2.0f);
  EXPECT_TRUE(std::isnan(decode_bf16(encode_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace fulcrum::kernels
