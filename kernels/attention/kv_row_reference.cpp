#include "kernels/attention/kv_row_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/common/formats.h"

namespace fulcrum::kernels {

std::array<double, kKvHeadDim> decode_kv_row(const KvPool& pool, std::int32_t row) {
  const std::uint8_t* data = pool.pages + kv_data_offset(pool, row);
  const std::uint8_t* scales = pool.pages + kv_scale_offset(pool, row);
  std::array<double, kKvHeadDim> values{};
  for (int i = 0; i < kKvFp8Values; ++i) {
    values[i] = static_cast<double>(decode_e4m3(data[i])) * decode_e8m0(scales[i / kKvScaleGroup]);
  }
  for (int i = 0; i < kKvRopeValues; ++i) {
    std::uint16_t code = 0;
    std::memcpy(&code, data + kKvFp8Values + 2 * i, sizeof(code));
    values[kKvFp8Values + i] = decode_bf16(code);
  }
  return values;
}

void encode_kv_row(const std::array<float, kKvHeadDim>& values, const KvPool& pool,
                   std::int32_t row) {
  std::uint8_t* data = pool.pages + kv_data_offset(pool, row);
  std::uint8_t* scales = pool.pages + kv_scale_offset(pool, row);
  for (int group = 0; group < kKvScales; ++group) {
    const float* first = values.data() + group * kKvScaleGroup;
    float largest = 1e-4F;
    for (int i = 0; i < kKvScaleGroup; ++i) largest = std::max(largest, std::fabs(first[i]));
    scales[group] = encode_e8m0_ceil(largest / 448.0F);
    const float inverse = 1.0F / decode_e8m0(scales[group]);
    for (int i = 0; i < kKvScaleGroup; ++i) {
      data[group * kKvScaleGroup + i] = encode_e4m3(first[i] * inverse);
    }
  }
  scales[kKvScales] = 0;
  for (int i = 0; i < kKvRopeValues; ++i) {
    const std::uint16_t code = encode_bf16(values[kKvFp8Values + i]);
    std::memcpy(data + kKvFp8Values + 2 * i, &code, sizeof(code));
  }
}

}  // namespace fulcrum::kernels
