// Byte layout of one row of the FP8 key/value cache and of a page of such rows.
//
// A row is 584 bytes: 448 E4M3 values (the part without position), 64 BF16 values (the rotary
// part), 7 UE8M0 scales (one per 64 E4M3 values) and one byte of padding. Within a page the 576
// data bytes of all rows come first and the 8-byte scale records of all rows follow, so that data
// rows stay 16-byte aligned. Source: the paged layout that SGLang's DeepSeek-V4 memory pool and
// FlashMLA document.
#pragma once

#include <cstdint>

namespace fulcrum::kernels {

inline constexpr int kKvHeadDim = 512;         // values per row; K and V are the same row
inline constexpr int kKvFp8Values = 448;       // E4M3 part
inline constexpr int kKvRopeValues = 64;       // BF16 part
inline constexpr int kKvScaleGroup = 64;       // E4M3 values under one UE8M0 scale
inline constexpr int kKvScales = 7;            // kKvFp8Values / kKvScaleGroup
inline constexpr int kKvDataBytes = 576;       // kKvFp8Values + 2 * kKvRopeValues
inline constexpr int kKvScaleRecordBytes = 8;  // kKvScales and one byte of padding
inline constexpr int kKvRowBytes = kKvDataBytes + kKvScaleRecordBytes;

static_assert(kKvFp8Values + kKvRopeValues == kKvHeadDim);
static_assert(kKvScales * kKvScaleGroup == kKvFp8Values);
static_assert(kKvRowBytes == 584);

// A pool of pages. Row r lives in page r / rows_per_page at place r % rows_per_page.
// rows_per_page is a power of two, page_stride_bytes a multiple of 16, `pages` 16-byte aligned.
struct KvPool {
  std::uint8_t* pages = nullptr;
  std::int32_t rows_per_page_log2 = 0;
  std::int64_t page_stride_bytes = 0;
};

// Smallest page stride that holds the rows: data, then scales, padded to a multiple of 576 bytes
// as the engines' pools are.
constexpr std::int64_t kv_page_stride_bytes(int rows_per_page_log2) {
  const std::int64_t used = std::int64_t{kKvRowBytes} << rows_per_page_log2;
  return (used + kKvDataBytes - 1) / kKvDataBytes * kKvDataBytes;
}

// Offset of a row's 576 data bytes from `pages`.
constexpr std::int64_t kv_data_offset(const KvPool& pool, std::int32_t row) {
  const std::int64_t page = row >> pool.rows_per_page_log2;
  const std::int64_t place = row & ((1 << pool.rows_per_page_log2) - 1);
  return page * pool.page_stride_bytes + place * kKvDataBytes;
}

// Offset of a row's 8-byte scale record from `pages`.
constexpr std::int64_t kv_scale_offset(const KvPool& pool, std::int32_t row) {
  const std::int64_t page = row >> pool.rows_per_page_log2;
  const std::int64_t place = row & ((1 << pool.rows_per_page_log2) - 1);
  return page * pool.page_stride_bytes + (std::int64_t{kKvDataBytes} << pool.rows_per_page_log2) +
         place * kKvScaleRecordBytes;
}

}  // namespace fulcrum::kernels
