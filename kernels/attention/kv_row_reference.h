// Host side of the 584-byte row: decode and encode one row, slowly and obviously.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/attention/kv_row.h"

namespace fulcrum::kernels {

// The 512 values of row `row` of a pool in host memory.
std::array<double, kKvHeadDim> decode_kv_row(const KvPool& pool, std::int32_t row);

// Writes `values` as row `row`: per group of 64 the scale is the smallest power of two >= amax /
// 448, where amax is at least 1e-4 (the floor of the checkpoint's own activation quantiser); the
// last 64 values are rounded to BF16.
void encode_kv_row(const std::array<float, kKvHeadDim>& values, const KvPool& pool,
                   std::int32_t row);

}  // namespace fulcrum::kernels
