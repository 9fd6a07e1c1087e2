// Pushing data into a neighbour block's shared memory (thread-block clusters, sm_90 and up).
//
// Protocol: every block initialises its own barrier with the bytes it will receive, all blocks of
// the cluster meet once (arrive early, wait just before the first push: the meeting hides behind
// the loads), then each block pushes with st.async, whose arrival completes the receiver's barrier.
// No block waits for its own pushes, and none can leave before what it must receive has come, so
// nobody writes into a dead block.
#pragma once

#include <cstdint>

namespace fulcrum::kernels {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// One thread calls this; `num_bytes` is all that the other blocks will push here.
__device__ __forceinline__ void receive_init(std::uint64_t* barrier, std::uint32_t num_bytes) {
  const std::uint32_t address = shared_address(barrier);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address) : "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address),
               "r"(num_bytes)
               : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// `target` and `barrier` are this block's addresses; the store goes to the same offsets of block
// `rank`.
__device__ __forceinline__ void push(const void* target, std::uint64_t* barrier, int rank,
                                     float4 value) {
  std::uint32_t remote_target;
  std::uint32_t remote_barrier;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote_target)
               : "r"(shared_address(target)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote_barrier)
               : "r"(shared_address(barrier)), "r"(rank));
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%2,%3,%4}, [%5];" ::
          "r"(remote_target),
      "r"(__float_as_uint(value.x)), "r"(__float_as_uint(value.y)), "r"(__float_as_uint(value.z)),
      "r"(__float_as_uint(value.w)), "r"(remote_barrier)
      : "memory");
}

__device__ __forceinline__ void receive_wait(std::uint64_t* barrier) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(shared_address(barrier))
      : "memory");
}

#endif

}  // namespace fulcrum::kernels
