// Block 0 sorts the slots by expert in shared memory; the others bring x into the layout of
// moe_layout.cuh.
#include <algorithm>

#include "kernels/common/dependent_launch.cuh"
#include "kernels/moe/moe_layout.cuh"
#include "kernels/moe/moe_parts.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 1024;

// Inclusive sum over the warp's lanes.
__device__ int warp_scan(int value) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += below;
  }
  return value;
}

__device__ void sort_slots(const MoeArgs& args, const MoeWorkspace& w) {
  __shared__ std::int32_t count[kThreads];
  __shared__ std::int32_t warp_total[kThreads / 32];
  const int tid = threadIdx.x;
  const int num_slots = args.shape.tokens * args.shape.top_k;
  count[tid] = 0;
  __syncthreads();
  for (int slot = tid; slot < num_slots; slot += kThreads) {
    atomicAdd(&count[args.expert_ids[slot]], 1);
  }
  __syncthreads();
  // One scan for both sums: slots in the low bits, used experts above them.
  constexpr int kUsedShift = 20;  // More than 4096 tokens * 16 experts.
  const int mine = count[tid] + (count[tid] > 0 ? 1 << kUsedShift : 0);
  const int in_warp = warp_scan(mine);
  if (tid % 32 == 31) warp_total[tid / 32] = in_warp;
  __syncthreads();
  if (tid < 32) warp_total[tid] = warp_scan(warp_total[tid]);
  __syncthreads();
  const int inclusive = in_warp + (tid >= 32 ? warp_total[tid / 32 - 1] : 0);
  constexpr int kSlotMask = (1 << kUsedShift) - 1;
  const int begin = (inclusive & kSlotMask) - count[tid];
  if (count[tid] > 0) {
    w.runs[(inclusive >> kUsedShift) - 1] = {
        .expert = tid, .begin = begin, .end = inclusive & kSlotMask};
  }
  if (tid == kThreads - 1) *w.num_runs = inclusive >> kUsedShift;
  count[tid] = begin;
  __syncthreads();
  // The order inside an expert is whatever the atomics make it; no result depends on it.
  for (int slot = tid; slot < num_slots; slot += kThreads) {
    const int at = atomicAdd(&count[args.expert_ids[slot]], 1);
    w.sorted_slot[at] = slot;
    w.sorted_token[at] = slot / args.shape.top_k;
  }
}

__global__ void __launch_bounds__(kThreads)
    moe_prepare_kernel(const MoeArgs args, const MoeWorkspace w) {
  device::allow_dependent_launch();
  if (blockIdx.x == 0) {
    sort_slots(args, w);
    return;
  }
  const std::int64_t total = static_cast<std::int64_t>(args.shape.tokens) * args.shape.hidden;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x - 1) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x - 1) * kThreads + threadIdx.x;
       i < total; i += stride) {
    w.permuted_x[i / 128 * 128 + moe_position(static_cast<int>(i % 128))] = args.x[i];
  }
}

}  // namespace

cudaError_t launch_moe_prepare(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream) {
  const std::int64_t total = static_cast<std::int64_t>(args.shape.tokens) * args.shape.hidden;
  const auto copy_blocks =
      static_cast<unsigned>(std::min<std::int64_t>((total + kThreads - 1) / kThreads, 1024));
  moe_prepare_kernel<<<1 + copy_blocks, kThreads, 0, stream>>>(args, w);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
