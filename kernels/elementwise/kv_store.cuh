// One warp quantises and stores one 584-byte row; shared by the window store and the compressor.
#pragma once

#include "kernels/attention/kv_row.h"
#include "kernels/elementwise/row_math.cuh"

namespace fulcrum::kernels::device {

// Lane l holds values 16 l .. 16 l + 15 of the normalised row. Lanes 28-31 (the rotary part) rotate
// by `cos_sin`, the 32 pairs of the row's position, and store BF16; four lanes share one scale
// group.
__device__ __forceinline__ void store_kv_row(float (&v)[16], const float2* cos_sin,
                                             const KvPool& pool, std::int32_t row, int lane) {
  constexpr int kFirstRopeLane = kKvFp8Values / 16;
  std::uint8_t* data = pool.pages + kv_data_offset(pool, row);
  float largest = 1e-4F;  // floor of the checkpoint's activation quantiser
#pragma unroll
  for (int i = 0; i < 16; ++i) largest = fmaxf(largest, fabsf(v[i]));
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 2));
  if (lane < kFirstRopeLane) {
    const std::uint8_t scale_code = encode_e8m0_ceil(largest / 448.0F);
    const float inverse = 1.0F / decode_e8m0(scale_code);
    std::uint32_t words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      words[w] = pack_e4m3x4(v[4 * w] * inverse, v[4 * w + 1] * inverse, v[4 * w + 2] * inverse,
                             v[4 * w + 3] * inverse);
    }
    *reinterpret_cast<uint4*>(data + 16 * lane) =
        make_uint4(words[0], words[1], words[2], words[3]);
    if (lane % 4 == 0) pool.pages[kv_scale_offset(pool, row) + lane / 4] = scale_code;
  } else {
    const int first_pair = (lane - kFirstRopeLane) * 8;
    std::uint32_t words[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      rotate<false>(v[2 * i], v[2 * i + 1], cos_sin[first_pair + i]);
      words[i] = pack_bf16x2(v[2 * i], v[2 * i + 1]);
    }
    uint4* out = reinterpret_cast<uint4*>(data + kKvFp8Values) + 2 * (lane - kFirstRopeLane);
    out[0] = make_uint4(words[0], words[1], words[2], words[3]);
    out[1] = make_uint4(words[4], words[5], words[6], words[7]);
    if (lane == kFirstRopeLane) pool.pages[kv_scale_offset(pool, row) + kKvScales] = 0;
  }
}

}  // namespace fulcrum::kernels::device
