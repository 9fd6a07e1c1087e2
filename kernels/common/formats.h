// Number formats of the checkpoint, decoded and encoded exactly, on host and device.
//   E4M3 (fn): OCP 8-bit floating point specification 1.0; bias 7, no infinity, NaN = 0x7f / 0xff,
//   max 448. E2M1, E8M0: OCP microscaling formats specification 1.0; E2M1 magnitudes 0 .5 1 1.5 2 3
//   4 6, E8M0 = 2^(code-127), NaN = 255.   BF16: upper half of an IEEE binary32.
// Decoders are exact. Encoders round to nearest, ties to even, and saturate finite values.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__CUDACC__)
#define FULCRUM_HOST_DEVICE __host__ __device__
#else
#define FULCRUM_HOST_DEVICE
#endif

namespace fulcrum::kernels {

FULCRUM_HOST_DEVICE inline float float_from_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

FULCRUM_HOST_DEVICE inline std::uint32_t bits_from_float(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  return std::bit_cast<std::uint32_t>(value);
#endif
}

FULCRUM_HOST_DEVICE inline float decode_bf16(std::uint16_t code) {
  return float_from_bits(static_cast<std::uint32_t>(code) << 16);
}

FULCRUM_HOST_DEVICE inline std::uint16_t encode_bf16(float value) {
  const std::uint32_t bits = bits_from_float(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

FULCRUM_HOST_DEVICE inline float decode_e4m3(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80u) << 24;
  const std::uint32_t magnitude = code & 0x7fu;
  if (magnitude == 0x7fu) return float_from_bits(sign | 0x7fc00000u);
  if (magnitude < 8u) {  // Subnormal: magnitude / 8 * 2^-6.
    const float value = static_cast<float>(magnitude) * 0.001953125f;
    return float_from_bits(sign | bits_from_float(value));
  }
  return float_from_bits(sign | ((magnitude << 20) + (120u << 23)));  // Rebias 7 -> 127.
}

// NaN encodes as NaN; infinities and magnitudes above 448 saturate to 448 (what the checkpoint's
// quantizers do).
FULCRUM_HOST_DEVICE inline std::uint8_t encode_e4m3(float value) {
  const std::uint32_t bits = bits_from_float(value);
  const std::uint8_t sign = static_cast<std::uint8_t>((bits >> 24) & 0x80u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(sign | 0x7fu);
  const float absolute = float_from_bits(magnitude);
  if (absolute >= 448.0f) return static_cast<std::uint8_t>(sign | 0x7eu);
  if (absolute <
      0.015625f) {  // Below 2^-6: a multiple of 2^-9; adding 1.5 * 2^14 rounds to it exactly.
    const float rounded = (absolute + 24576.0f) - 24576.0f;
    return static_cast<std::uint8_t>(sign | static_cast<std::uint32_t>(rounded * 512.0f));
  }
  const std::uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  const std::uint32_t code = (rounded >> 20) - (120u << 3);
  return static_cast<std::uint8_t>(sign | (code > 0x7eu ? 0x7eu : code));
}

FULCRUM_HOST_DEVICE inline float decode_e2m1(std::uint8_t code) {
  const std::uint32_t magnitude = code & 7u;
  // Halves: 0 1 2 3 4 6 8 12, four bits each.
  const float value = static_cast<float>((0xC8643210u >> (4u * magnitude)) & 15u) * 0.5f;
  return (code & 8u) != 0 ? -value : value;
}

FULCRUM_HOST_DEVICE inline std::uint8_t encode_e2m1(float value) {
  const std::uint8_t sign = (bits_from_float(value) >> 31) != 0 ? 8 : 0;
  const float a = value < 0 ? -value : value;
  // Midpoints .25 .75 1.25 1.75 2.5 3.5 5; a tie goes to the even code.
  std::uint8_t code = 0;
  if (a > 5.0f)
    code = 7;
  else if (a >= 3.5f)
    code = 6;
  else if (a > 2.5f)
    code = 5;
  else if (a >= 1.75f)
    code = 4;
  else if (a > 1.25f)
    code = 3;
  else if (a >= 0.75f)
    code = 2;
  else if (a > 0.25f)
    code = 1;
  return static_cast<std::uint8_t>(sign | code);
}

// Code 0 is 2^-127 (a binary32 subnormal); code 255 is NaN.
FULCRUM_HOST_DEVICE inline float decode_e8m0(std::uint8_t code) {
  if (code == 255u) return float_from_bits(0x7fc00000u);
  if (code == 0u) return float_from_bits(0x00400000u);
  return float_from_bits(static_cast<std::uint32_t>(code) << 23);
}

// Smallest power of two >= value (how block scales are chosen, so that the block does not
// overflow); values at or below 2^-127 give code 0.
FULCRUM_HOST_DEVICE inline std::uint8_t encode_e8m0_ceil(float value) {
  const std::uint32_t bits = bits_from_float(value) & 0x7fffffffu;
  if (bits > 0x7f800000u) return 255u;
  if (bits <= 0x00400000u) return 0u;
  const std::uint32_t code = (bits + 0x7fffffu) >> 23;
  return static_cast<std::uint8_t>(code > 254u ? 254u : code);
}

}  // namespace fulcrum::kernels
