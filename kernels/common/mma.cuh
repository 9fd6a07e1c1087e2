// Device helpers shared by the tensor-core kernels: fragments fed straight from global memory.
//
// mma.m16n8k16 gives lane (g = lane / 4, t = lane % 4) the k indices {2t, 2t+1, 2t+8, 2t+9} of A
// rows g and g+8 and of B column g. A sum over k does not care which k is called which, so a kernel
// may hand lane t any four k values as long as A and B agree. All kernels here let lane t own a
// contiguous chunk: then both operands come from memory as 16-byte loads, and no shared-memory
// transpose or ldmatrix is needed.
#pragma once

#include <cstdint>

#include "kernels/common/warp.cuh"

namespace fulcrum::kernels::device {

// Fragments of m16n8k16, `group` = lane / 4, `pair` = lane % 4 (PTX ISA, "Matrix fragments for
// mma.m16n8k16"):
//   A[i] of a 16x16 tile: rows group (+8 for odd i), columns 2 * pair (+8 for i >= 2)
//   B[i] of a 16x8 tile:  rows 2 * pair (+8 for i = 1), column group
//   C[i] of a 16x8 tile:  row group (+8 for i >= 2), columns 2 * pair + i % 2

// Four 8x8 16-bit matrices; lane l supplies the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrix_x4(std::uint32_t (&r)[4], std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

__device__ __forceinline__ void load_matrix_x4_transposed(std::uint32_t (&r)[4],
                                                          std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

// c += a * b, BF16 inputs, FP32 accumulation.
__device__ __forceinline__ void mma_bf16(float (&c)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c += a * b, FP16 inputs, FP32 accumulation.
__device__ __forceinline__ void mma_f16(float (&c)[4], const std::uint32_t (&a)[4],
                                        std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c += a * b on 16x8x8 with TF32 inputs (FP32 registers whose low 13 mantissa bits are ignored).
// A[i]: rows group (+8 for odd i), column pair (+4 for i >= 2); B[i]: row pair (+4 for i = 1),
// column group.
__device__ __forceinline__ void mma_tf32(float (&c)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// E4M3 products. sm_89 and sm_120 multiply E4M3 natively (m16n8k32); elsewhere ptxas would convert
// both operands to binary16 at each use, so the conversion is written out here and the 16-row
// operand keeps it. Both ways are exact per product: E4M3 is a subset of binary16.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
#define FULCRUM_NATIVE_E4M3_MMA 1
#else
#define FULCRUM_NATIVE_E4M3_MMA 0
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline constexpr float kE4m3Unpack = 1.0f;
// Four codes to two pairs of halves.
__device__ __forceinline__ void unpack_e4m3(std::uint32_t codes, std::uint32_t& first,
                                            std::uint32_t& second) {
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high;\n"
      "}\n"
      : "=r"(first), "=r"(second)
      : "r"(codes));
}
#else
// Exponent and mantissa shifted into binary16's fields are the value times 2^-8, subnormals
// included. The pairs are bytes (1, 3) and (0, 2): another order of k, the same for both operands.
// NaN codes become 480.
inline constexpr float kE4m3Unpack = 0x1p-8f;
__device__ __forceinline__ void unpack_e4m3(std::uint32_t codes, std::uint32_t& first,
                                            std::uint32_t& second) {
  const std::uint32_t shifted = codes << 8;
  first = (codes & 0x80008000u) | ((codes >> 1) & 0x3f803f80u);
  second = (shifted & 0x80008000u) | ((shifted >> 1) & 0x3f803f80u);
}
#endif

// Rows g and g+8 of the 16-row operand for 32 columns: lane t's eight codes of each row.
struct E4m3Rows {
#if FULCRUM_NATIVE_E4M3_MMA
  std::uint32_t word[4];
#else
  std::uint32_t half[2][4];
#endif
};

__device__ __forceinline__ E4m3Rows e4m3_rows(std::uint32_t top0, std::uint32_t top1,
                                              std::uint32_t bottom0, std::uint32_t bottom1) {
  E4m3Rows rows;
#if FULCRUM_NATIVE_E4M3_MMA
  rows.word[0] = top0;
  rows.word[1] = bottom0;
  rows.word[2] = top1;
  rows.word[3] = bottom1;
#else
  unpack_e4m3(top0, rows.half[0][0], rows.half[0][2]);
  unpack_e4m3(bottom0, rows.half[0][1], rows.half[0][3]);
  unpack_e4m3(top1, rows.half[1][0], rows.half[1][2]);
  unpack_e4m3(bottom1, rows.half[1][1], rows.half[1][3]);
#endif
  return rows;
}

// Column g of the 8-column operand, the same 32 columns of k. Unpacked once for all row tiles.
struct E4m3Column {
#if FULCRUM_NATIVE_E4M3_MMA
  std::uint32_t word[2];
#else
  std::uint32_t half[4];
#endif
};

__device__ __forceinline__ E4m3Column e4m3_column(std::uint32_t word0, std::uint32_t word1) {
  E4m3Column column;
#if FULCRUM_NATIVE_E4M3_MMA
  column.word[0] = word0;
  column.word[1] = word1;
#else
  unpack_e4m3(word0, column.half[0], column.half[1]);
  unpack_e4m3(word1, column.half[2], column.half[3]);
#endif
  return column;
}

// d += rows * column over 32 columns of k; d carries the factor kE4m3Product.
#if FULCRUM_NATIVE_E4M3_MMA
inline constexpr float kE4m3Product = 1.0f;
#else
inline constexpr float kE4m3Product = kE4m3Unpack * kE4m3Unpack;
#endif
__device__ __forceinline__ void mma_e4m3(float (&d)[4], const E4m3Rows& a, const E4m3Column& b) {
#if FULCRUM_NATIVE_E4M3_MMA
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]),
        "r"(b.word[1]));
#else
  mma_f16(d, a.half[0], b.half[0], b.half[1]);
  mma_f16(d, a.half[1], b.half[2], b.half[3]);
#endif
}

}  // namespace fulcrum::kernels::device
