#include "replay/spin.h"

namespace fulcrum::replay {
namespace {

__device__ std::uint64_t global_nanoseconds() {
  std::uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

__global__ void spin_kernel(std::int64_t nanoseconds) {
  const std::uint64_t start = global_nanoseconds();
  while (global_nanoseconds() - start < static_cast<std::uint64_t>(nanoseconds)) {
  }
}

__global__ void empty_kernel() {}

__global__ void illegal_write_kernel(std::int32_t* address) { *address = 1; }

__global__ void hang_kernel(const volatile std::int32_t* flag) {
  while (*flag == 0) {
  }
}

}  // namespace

cudaError_t launch_spin(std::int64_t nanoseconds, cudaStream_t stream) {
  spin_kernel<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaGetLastError();
}

cudaError_t launch_empty(cudaStream_t stream) {
  empty_kernel<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t launch_illegal_write(cudaStream_t stream) {
  // Canonical but far above anything the driver maps.
  illegal_write_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<std::int32_t*>(0x7f0000000000ull));
  return cudaGetLastError();
}

cudaError_t launch_hang(const std::int32_t* flag, cudaStream_t stream) {
  hang_kernel<<<1, 1, 0, stream>>>(flag);
  return cudaGetLastError();
}

}  // namespace fulcrum::replay
