// Eight BF16 values as one 16-byte word, and the rotary step on adjacent pairs.
#pragma once

#include <cstdint>

#include "kernels/common/formats.h"

namespace fulcrum::kernels::device {

__device__ __forceinline__ void unpack_bf16x8(const uint4& word, float (&v)[8]) {
  const std::uint32_t w[4] = {word.x, word.y, word.z, word.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = float_from_bits(w[i] << 16);
    v[2 * i + 1] = float_from_bits(w[i] & 0xffff0000U);
  }
}

__device__ __forceinline__ std::uint32_t pack_bf16x2(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

__device__ __forceinline__ uint4 pack_bf16x8(const float (&v)[8]) {
  return make_uint4(pack_bf16x2(v[0], v[1]), pack_bf16x2(v[2], v[3]), pack_bf16x2(v[4], v[5]),
                    pack_bf16x2(v[6], v[7]));
}

// Four E4M3 codes in a word; the rounding and saturation of encode_e4m3, which sm_89 and later do
// in hardware.
__device__ __forceinline__ std::uint32_t pack_e4m3x4(float a, float b, float c, float d) {
#if __CUDA_ARCH__ >= 890
  std::uint16_t low;
  std::uint16_t high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b), "f"(a));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d), "f"(c));
  return low | static_cast<std::uint32_t>(high) << 16;
#else
  return encode_e4m3(a) | static_cast<std::uint32_t>(encode_e4m3(b)) << 8 |
         static_cast<std::uint32_t>(encode_e4m3(c)) << 16 |
         static_cast<std::uint32_t>(encode_e4m3(d)) << 24;
#endif
}

// Multiplies the complex number (re, im) by (cos, sin); kInverse by its conjugate.
template <bool kInverse>
__device__ __forceinline__ void rotate(float& re, float& im, float2 cos_sin) {
  const float s = kInverse ? -cos_sin.y : cos_sin.y;
  const float rotated_re = re * cos_sin.x - im * s;
  im = re * s + im * cos_sin.x;
  re = rotated_re;
}

}  // namespace fulcrum::kernels::device
