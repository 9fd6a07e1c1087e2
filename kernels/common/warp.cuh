// Loads and reductions that kernels of all families share.
#pragma once

#include <cstdint>

namespace fulcrum::kernels::device {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes that may be read again: through L1.
__device__ __forceinline__ uint4 load_cached(const void* address) {
  uint4 value;
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
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
