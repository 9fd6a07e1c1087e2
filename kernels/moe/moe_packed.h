// Bit layout of the grouped kernel's FP4 codes. Engines repack FP4 weights once, at load, so that
// their kernels take codes apart with few instructions; so does this one, within each 32-bit word.
//
// A word holds eight codes (sign s, magnitude bits m2 m1 m0) and is needed as four BF16 pairs, code
// p in the lower and code p + 4 in the upper half, with s at bit 15 and m2 m1 m0 at bits 8-6. Bits
// within a half, code p below standing for code p + 4 in the upper half too:
//
//   15  14 13 12  11  10  9   8 7 6   5   4 3     2 1 0
//   s0  m(p=2)    s3  m0  s1  m(p=0)  s2  m2 m1   m(p=1)        m0, m2 m1 of p = 3
//
// where s2 of a half belongs to the other half's code. Pair 0 is there, pair 1 needs a shift, pair
// 2 a rotation, pair 3 two shifts: 9 instructions a word, 13 from the published order.
#pragma once

#include <cstdint>

#include "kernels/common/formats.h"

namespace fulcrum::kernels {

inline constexpr std::uint32_t kFp4Fields = 0x81c081c0U;  // s, m2 m1 m0 of both halves

// Eight codes, code c in bits 4c .. 4c + 3, to the layout above.
FULCRUM_HOST_DEVICE constexpr std::uint32_t fp4_pack(std::uint32_t codes) {
  std::uint32_t word = 0;
  for (int half = 0; half < 2; ++half) {
    const auto code = [&](int p) { return codes >> (4 * (p + 4 * half)) & 15U; };
    const auto sign = [&](int p) { return code(p) >> 3; };
    const auto magnitude = [&](int p) { return code(p) & 7U; };
    const std::uint32_t bits = sign(0) << 15 | magnitude(0) << 6 | sign(1) << 9 | magnitude(1) |
                               magnitude(2) << 12 | sign(3) << 11 | (magnitude(3) >> 1) << 3 |
                               (magnitude(3) & 1U) << 10;
    word |= bits << (16 * half);
    word |= sign(2) << (5 + 16 * (1 - half));
  }
  return word;
}

// The four pairs of a packed word, every other bit zero.
FULCRUM_HOST_DEVICE constexpr void fp4_spread(std::uint32_t word, std::uint32_t (&pairs)[4]) {
  constexpr std::uint32_t kLastBit = 0x00400040U;
  pairs[0] = word & kFp4Fields;
  pairs[1] = (word << 6) & kFp4Fields;
  pairs[2] = (word >> 6 | word << 26) & kFp4Fields;
  pairs[3] = ((word << 4) & (kFp4Fields & ~kLastBit)) | ((word >> 4) & kLastBit);
}

}  // namespace fulcrum::kernels
