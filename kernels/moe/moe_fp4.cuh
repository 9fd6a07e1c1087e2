// E2M1 codes to BF16 pairs in registers.
#pragma once

#include "kernels/common/formats.h"
#include "kernels/moe/moe_packed.h"

namespace fulcrum::kernels {

// Decoded values carry this factor, so that the multiplier below fits BF16 for every scale in the
// stated range.
inline constexpr float kFp4Bias = 0x1p-64f;

__device__ __forceinline__ std::uint32_t multiply_bf16x2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product;  // a * b - 0: sm_80 has no plain bf16x2 product.
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(a), "r"(b), "r"(0x80008000u));
  return product;
}

// The pairs of a packed word (moe_packed.h) as BF16. An E2M1 code in BF16's sign, low exponent and
// high mantissa bits is its value times 2^-126, zero and the subnormal 0.5 included; `multiplier`
// (in both halves) is scale * 2^126 * kFp4Bias.
__device__ __forceinline__ void decode_fp4(std::uint32_t word, std::uint32_t multiplier,
                                           std::uint32_t (&pairs)[4]) {
  fp4_spread(word, pairs);
#pragma unroll
  for (int p = 0; p < 4; ++p) pairs[p] = multiply_bf16x2(pairs[p], multiplier);
}

// E8M0 code s: 2^(s - 127) * 2^126 * 2^-64 has BF16 exponent field s + 62.
__device__ __forceinline__ std::uint32_t fp4_multiplier_e8m0(std::uint32_t code) {
  constexpr std::uint32_t kTwice = 0x00010001u << 7;
  return code * kTwice + 62u * kTwice;
}

// E4M3 code (non-negative): in BF16's fields it is the scale times 2^-120; 2^182 remains, exact in
// two steps.
__device__ __forceinline__ std::uint32_t fp4_multiplier_e4m3(std::uint32_t code) {
  const float scaled = float_from_bits((code & 0x7fu) << 20) * 0x1p91f * 0x1p91f;
  const std::uint32_t bits = bits_from_float(scaled);
  return (bits >> 16) | (bits & 0xffff0000u);
}

}  // namespace fulcrum::kernels
