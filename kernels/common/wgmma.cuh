// Warpgroup matrix products of sm_90a with both operands in shared memory, in tiles of 128-byte
// rows in the 128-byte swizzle. PTX ISA, "Asynchronous warpgroup level matrix multiply-accumulate".
// Only files compiled for sm_90a may use it.
#pragma once

#include <cstdint>

#include "kernels/common/warp.cuh"

namespace fulcrum::kernels::device {

// Place of 16-byte chunk `chunk` (0..7) of 128-byte row `row` in a tile that starts at a multiple
// of 1024 bytes.
__device__ __forceinline__ int swizzled_offset(int row, int chunk) {
  return 128 * row + 16 * (chunk ^ (row & 7));
}

// Matrix descriptor of such a tile: address and stride between groups of eight rows (1024 bytes) in
// units of 16 bytes, swizzle mode 1 (128 bytes) in the top bits. The leading-dimension offset is
// not used by this mode.
__device__ __forceinline__ std::uint64_t swizzled_descriptor(const void* tile) {
  constexpr std::uint64_t kUnusedLeading = 1ULL << 16;
  constexpr std::uint64_t kStride = (1024ULL >> 4) << 32;
  constexpr std::uint64_t kSwizzle128 = 1ULL << 62;
  return ((shared_address(tile) & 0x3ffffU) >> 4) | kUnusedLeading | kStride | kSwizzle128;
}

// Descriptor increment per 32 bytes of depth.
inline constexpr std::uint64_t kDescriptorStep32 = 32 >> 4;

// Increment per 16 rows of 128 bytes: depth steps of an operand whose rows lie along the depth.
inline constexpr std::uint64_t kDescriptorStep16Rows = 16 * 128 >> 4;

// Orders ordinary shared-memory writes of this thread (cp.async included) before asynchronous-proxy
// reads.
__device__ __forceinline__ void fence_for_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
__device__ __forceinline__ void warpgroup_arrive() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void warpgroup_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
}

// d (64 x 64, FP32) = or += a (64 x 32) b^T (64 x 32), E4M3. Thread t of the warpgroup holds, for j
// < 8, columns 8 j + 2 (t % 4) + {0, 1} of rows 16 (t / 32) + t % 32 / 4 in d[4 j + {0, 1}] and of
// the row 8 below in d[4 j + {2, 3}].
__device__ __forceinline__ void wgmma_64x64x32(float (&d)[32], std::uint64_t a, std::uint64_t b,
                                               bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

// d (64 x N, FP32) = or += a (64 x 16) b^T (N x 16), BF16; N is twice the length of d, fragments as
// above. Rows of b lie along N. Those of a lie along its 64 when not kRowsAlongDepth; else a row of
// the tile holds one depth and a's 64 lie along it.
template <bool kRowsAlongDepth>
__device__ __forceinline__ void wgmma_bf16(float (&d)[8], std::uint64_t a, std::uint64_t b,
                                           bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %10, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7"
      "}, %8, %9, p, 1, 1, %11, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(kRowsAlongDepth ? 1 : 0));
}

template <bool kRowsAlongDepth>
__device__ __forceinline__ void wgmma_bf16(float (&d)[32], std::uint64_t a, std::uint64_t b,
                                           bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,"
      "%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
      "%24,%25,%26,%27,%28,%29,%30,%31"
      "}, %32, %33, p, 1, 1, %35, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(kRowsAlongDepth ? 1 : 0));
}

}  // namespace fulcrum::kernels::device
