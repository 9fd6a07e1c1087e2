// One warp turns 128 values into an E4M3 index row; shared by queries and keys.
#pragma once

#include "kernels/common/warp.cuh"
#include "kernels/elementwise/row_math.cuh"
#include "kernels/indexer/indexer.h"

namespace fulcrum::kernels::device {

// Lane l holds values 4 l .. 4 l + 3. Rotates the last 64 (lanes 16-31) by the position's 32 pairs,
// applies the orthonormal Hadamard matrix of order 128 (Sylvester order) and quantises. Returns the
// four codes in a word; *scale is the row's scale, the same in all lanes.
__device__ __forceinline__ std::uint32_t encode_index_row(float (&v)[4], const float2* cos_sin,
                                                          int lane, float* scale) {
  constexpr int kFirstRopeLane = (kIndexDim - kIndexRopeValues) / 4;
  if (lane >= kFirstRopeLane) {
    const int pair = 2 * (lane - kFirstRopeLane);
    rotate<false>(v[0], v[1], cos_sin[pair]);
    rotate<false>(v[2], v[3], cos_sin[pair + 1]);
  }
  const float sum01 = v[0] + v[1];
  const float difference01 = v[0] - v[1];
  const float sum23 = v[2] + v[3];
  const float difference23 = v[2] - v[3];
  v[0] = sum01 + sum23;
  v[1] = difference01 + difference23;
  v[2] = sum01 - sum23;
  v[3] = difference01 - difference23;
#pragma unroll
  for (int offset = 1; offset < 32; offset <<= 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float other = __shfl_xor_sync(0xffffffffU, v[i], offset);
      v[i] = (lane & offset) != 0 ? other - v[i] : v[i] + other;
    }
  }
  constexpr float kInverseRootDim = 0.08838834764831845F;  // 1 / sqrt(128)
  float largest = 1e-4F;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v[i] *= kInverseRootDim;
    largest = fmaxf(largest, fabsf(v[i]));
  }
  largest = warp_max(largest);
  *scale = largest / 448.0F;
  const float inverse = 448.0F / largest;
  return pack_e4m3x4(v[0] * inverse, v[1] * inverse, v[2] * inverse, v[3] * inverse);
}

}  // namespace fulcrum::kernels::device
