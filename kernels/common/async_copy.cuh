// cp.async: global to shared memory without registers, any number in flight.
#pragma once

#include <cstdint>

namespace fulcrum::kernels {

// kBytes is 4, 8 or 16 and the alignment of both addresses; zeros arrive instead where `valid` is
// false (the source address must be readable all the same).
template <int kBytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool valid = true) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const int size = valid ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(address),
                 "l"(global), "r"(size)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(global),
                 "n"(kBytes), "r"(size)
                 : "memory");
  }
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most kPending of the committed groups are still on their way.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace fulcrum::kernels
