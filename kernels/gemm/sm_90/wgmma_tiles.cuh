// FP8 warpgroup mma with both operands in shared memory. PTX ISA, "Asynchronous warpgroup level
// matrix multiply-accumulate"; needs sm_90a.
#pragma once

#include <cstdint>

#include "kernels/common/cluster.cuh"

namespace fulcrum::kernels {

// Place of 16-byte chunk `chunk` (0..7) of 128-byte row `row` in a K-major tile in the 128-byte
// swizzle, which must start at a multiple of 1024 bytes.
__device__ __forceinline__ int tile_offset(int row, int chunk) {
  return 128 * row + 16 * (chunk ^ (row & 7));
}

// Matrix descriptor of such a tile: address and the 1024 bytes between groups of eight rows in
// units of 16 bytes, swizzle mode 1 (128 bytes). This mode does not use the leading-dimension
// offset.
__device__ __forceinline__ std::uint64_t tile_descriptor(const void* tile) {
  constexpr std::uint64_t kLeading = 1ull << 16;
  constexpr std::uint64_t kStride = (1024ull >> 4) << 32;
  constexpr std::uint64_t kSwizzle128 = 1ull << 62;
  return ((shared_address(tile) & 0x3ffffu) >> 4) | kLeading | kStride | kSwizzle128;
}
// What 32 columns add to a descriptor.
inline constexpr std::uint64_t kTileStep32 = 32 >> 4;

// Makes this thread's cp.async writes visible to the tensor cores' proxy.
__device__ __forceinline__ void fence_tiles() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void tiles_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void tiles_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void tiles_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// d (64 x 64) = or += a (64 x 32) * b^T (64 x 32). Lane (g = lane / 4, t = lane % 4) of warp w
// holds rows 16w + g (and 8 below in the upper two) of columns 8j + 2t, 8j + 2t + 1 in d[4j .. 4j +
// 3].
__device__ __forceinline__ void multiply_tiles(float (&d)[32], std::uint64_t a, std::uint64_t b,
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

}  // namespace fulcrum::kernels
