// Device helpers shared by the tensor-core kernels: fragments fed straight from global memory.
//
// mma.m16n8k16 gives lane (g = lane / 4, t = lane % 4) the k indices {2t, 2t+1, 2t+8, 2t+9} of A rows g and
// g+8 and of B column g. A sum over k does not care which k is called which, so a kernel may hand lane t any
// four k values as long as A and B agree. All kernels here let lane t own a contiguous chunk: then both
// operands come from memory as 16-byte loads, and no shared-memory transpose or ldmatrix is needed.
#pragma once

#include <cstdint>

namespace fulcrum::kernels {

// 16 bytes that this launch reads once: do not keep them in L1.
__device__ __forceinline__ uint4 load_streaming(const void* address) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}

__device__ __forceinline__ uint4 load_cached(const void* address) {
  uint4 value;
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}

// Four E4M3 codes to two pairs of halves, exactly (E4M3 is a subset of binary16), times kE4m3Unpack.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline constexpr float kE4m3Unpack = 1.0f;
__device__ __forceinline__ void unpack_e4m3(std::uint32_t codes, std::uint32_t& first,
                                            std::uint32_t& second) {
  const auto low = static_cast<std::uint16_t>(codes);
  const auto high = static_cast<std::uint16_t>(codes >> 16);
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(first) : "h"(low));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(second) : "h"(high));
}
#else
// Exponent and mantissa shifted into binary16's fields are the value times 2^-8, subnormals included. The
// pairs are bytes (1, 3) and (0, 2): another order of k, the same for both operands. NaN codes become 480.
inline constexpr float kE4m3Unpack = 0x1p-8f;
__device__ __forceinline__ void unpack_e4m3(std::uint32_t codes, std::uint32_t& first,
                                            std::uint32_t& second) {
  const std::uint32_t shifted = codes << 8;
  first = (codes & 0x80008000u) | ((codes >> 1) & 0x3f803f80u);
  second = (shifted & 0x80008000u) | ((shifted >> 1) & 0x3f803f80u);
}
#endif

// d += a (16 x 16, row) * b (16 x 8, column), binary16 in, binary32 accumulation.
__device__ __forceinline__ void mma_f16(float (&d)[4], std::uint32_t a0, std::uint32_t a1,
                                        std::uint32_t a2, std::uint32_t a3, std::uint32_t b0,
                                        std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_bf16(float (&d)[4], std::uint32_t a0, std::uint32_t a1,
                                         std::uint32_t a2, std::uint32_t a3, std::uint32_t b0,
                                         std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace fulcrum::kernels
