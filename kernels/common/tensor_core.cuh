// PTX wrappers of the warp-level tensor-core path that every architecture from sm_80 on has.
// Fragment layouts: PTX ISA, "Matrix fragments for mma.m16n8k16". `group` = lane / 4, `pair` = lane
// % 4:
//   A[i] of a 16x16 tile: rows group (+8 for odd i), columns 2 * pair (+8 for i >= 2)
//   B[i] of a 16x8 tile:  rows 2 * pair (+8 for i = 1), column group
//   C[i] of a 16x8 tile:  row group (+8 for i >= 2), columns 2 * pair + i % 2
#pragma once

#include <cstdint>

namespace fulcrum::kernels::device {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Copies 16 bytes global -> shared asynchronously, bypassing L1; writes zeros when `valid` is
// false.
__device__ __forceinline__ void copy_async_16(std::uint32_t shared, const void* global,
                                              bool valid = true) {
  const int size = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(global),
               "r"(size));
}

// The same for 8 bytes (through L1: the .cg form takes 16 bytes only).
__device__ __forceinline__ void copy_async_8(std::uint32_t shared, const void* global,
                                             bool valid = true) {
  const int size = valid ? 8 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;\n" ::"r"(shared), "l"(global),
               "r"(size));
}

// The same for 4 bytes.
__device__ __forceinline__ void copy_async_4(std::uint32_t shared, const void* global, bool valid) {
  const int size = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared), "l"(global),
               "r"(size));
}

__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;\n"); }

template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

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

// 16-byte streaming load: data that this launch reads once.
__device__ __forceinline__ uint4 load_streaming(const void* global) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(global));
  return v;
}

template <typename T, typename Op>
__device__ __forceinline__ T warp_reduce(T value, Op op) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value = op(value, __shfl_xor_sync(0xffffffffU, value, offset));
  }
  return value;
}

// 2^x with results below the normal range flushed to zero: one instruction where exp2f takes four.
__device__ __forceinline__ float exp2_flush(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float warp_sum(float value) {
  return warp_reduce(value, [](float a, float b) { return a + b; });
}

__device__ __forceinline__ float warp_max(float value) {
  return warp_reduce(value, [](float a, float b) { return fmaxf(a, b); });
}

// Sum over the block; every thread gets it. `scratch` holds 32 floats; blockDim.x a multiple of 32.
__device__ __forceinline__ float block_sum(float value, float* scratch) {
  value = warp_sum(value);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncthreads();  // An earlier reduction may still be read from `scratch`.
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  return warp_sum(lane < num_warps ? scratch[lane] : 0.0F);
}

}  // namespace fulcrum::kernels::device
