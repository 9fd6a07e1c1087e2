#include <cuda_bf16.h>

#include <algorithm>

#include "kernels/collective/peer_all_reduce.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 512;

__device__ std::uint64_t global_nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ void store_release(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

__device__ std::uint32_t load_acquire(const std::uint32_t* address) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

// Blocks of the same number on all ranks. Counts only grow (and wrap), so nothing needs clearing.
template <int kRanks>
__device__ void meet(const PeerView& view, std::uint32_t meeting) {
  __syncthreads();  // The block's writes come before the release below (cumulativity).
  if (threadIdx.x < kRanks) {
    const auto peer = static_cast<int>(threadIdx.x);
    const int row = static_cast<int>(blockIdx.x) * kMaxPeerRanks;
    store_release(view.flags[peer] + row + view.rank, meeting);
    const std::uint32_t* mine = view.flags[view.rank] + row + peer;
    while (static_cast<std::int32_t>(load_acquire(mine) - meeting) < 0) {
    }
  }
  __syncthreads();
}

template <typename Element>
struct Sum;

template <>
struct Sum<float> {
  float part[4];
  __device__ void start(const uint4& v) {
    part[0] = __uint_as_float(v.x), part[1] = __uint_as_float(v.y);
    part[2] = __uint_as_float(v.z), part[3] = __uint_as_float(v.w);
  }
  __device__ void add(const uint4& v) {
    part[0] += __uint_as_float(v.x), part[1] += __uint_as_float(v.y);
    part[2] += __uint_as_float(v.z), part[3] += __uint_as_float(v.w);
  }
  __device__ uint4 pack() const {
    return {__float_as_uint(part[0]), __float_as_uint(part[1]), __float_as_uint(part[2]),
            __float_as_uint(part[3])};
  }
};

template <>
struct Sum<__nv_bfloat16> {
  float2 part[4];
  __device__ static float2 widen(std::uint32_t word) {
    // A bfloat16 is the upper half of a float.
    return {__uint_as_float(word << 16U), __uint_as_float(word & 0xffff0000U)};
  }
  __device__ void start(const uint4& v) {
    part[0] = widen(v.x), part[1] = widen(v.y), part[2] = widen(v.z), part[3] = widen(v.w);
  }
  __device__ static void accumulate(float2& sum, std::uint32_t word) {
    const float2 value = widen(word);
    sum.x += value.x;
    sum.y += value.y;
  }
  __device__ void add(const uint4& v) {
    accumulate(part[0], v.x), accumulate(part[1], v.y);
    accumulate(part[2], v.z), accumulate(part[3], v.w);
  }
  __device__ static std::uint32_t narrow(const float2& value) {
    const __nv_bfloat162 pair = __float22bfloat162_rn(value);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  __device__ uint4 pack() const {
    return {narrow(part[0]), narrow(part[1]), narrow(part[2]), narrow(part[3])};
  }
};

struct Message {
  const uint4* in;
  uint4* out;
  std::int64_t num_packs;
};

__device__ uint4* staged(const PeerView& view, int rank, std::int64_t offset_packs) {
  return static_cast<uint4*>(view.staging[rank]) + offset_packs;
}

// Loads of all ranks are issued before the first addition, so that their latencies overlap.
template <typename Element, int kRanks>
__device__ uint4 reduce_pack(const PeerView& view, std::int64_t pack) {
  uint4 value[kRanks];
#pragma unroll
  for (int r = 0; r < kRanks; ++r) value[r] = *staged(view, r, pack);
  Sum<Element> sum;
  sum.start(value[0]);
#pragma unroll
  for (int r = 1; r < kRanks; ++r) sum.add(value[r]);
  return sum.pack();
}

template <typename Element, int kRanks, bool kTwoShot>
__global__ void __launch_bounds__(kThreads)
    peer_all_reduce(PeerView view, Message message, PeerTimes* times) {
  const bool clock = times != nullptr && blockIdx.x == 0 && threadIdx.x == 0;
  if (clock) times->entered = global_nanoseconds();
  PeerControl* control = view.control;
  // Read by all blocks before the last one to finish writes them.
  const std::uint32_t calls = *const_cast<volatile std::uint32_t*>(&control->calls);
  const std::uint32_t meetings = *const_cast<volatile std::uint32_t*>(&control->meetings);
  const std::int64_t offset =
      (calls & 1U) * (view.capacity_bytes / static_cast<std::int64_t>(sizeof(uint4)));
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;

  if constexpr (kTwoShot) {
    // Within every slice the same block handles the same packs, on every rank: block meets block.
    const std::int64_t slice = (message.num_packs + kRanks - 1) / kRanks;
    for (std::int64_t i = first; i < slice; i += stride) {
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        const std::int64_t pack = r * slice + i;
        if (pack < message.num_packs) *staged(view, view.rank, offset + pack) = message.in[pack];
      }
    }
    meet<kRanks>(view, meetings + 1);
    if (clock) times->met = global_nanoseconds();
    // Nobody else reads this rank's own slice of its own staging, so the sum can take its place.
    for (std::int64_t i = first; i < slice; i += stride) {
      const std::int64_t pack = view.rank * slice + i;
      if (pack < message.num_packs) {
        *staged(view, view.rank, offset + pack) = reduce_pack<Element, kRanks>(view, offset + pack);
      }
    }
    meet<kRanks>(view, meetings + 2);
    for (std::int64_t i = first; i < slice; i += stride) {
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        const std::int64_t pack = r * slice + i;
        if (pack < message.num_packs) message.out[pack] = *staged(view, r, offset + pack);
      }
    }
  } else {
    for (std::int64_t pack = first; pack < message.num_packs; pack += stride) {
      *staged(view, view.rank, offset + pack) = message.in[pack];
    }
    meet<kRanks>(view, meetings + 1);
    if (clock) times->met = global_nanoseconds();
    for (std::int64_t pack = first; pack < message.num_packs; pack += stride) {
      message.out[pack] = reduce_pack<Element, kRanks>(view, offset + pack);
    }
  }

  __syncthreads();
  if (threadIdx.x == 0) {
    if (clock) times->done = global_nanoseconds();
    if (atomicAdd(&control->blocks_done, 1U) == gridDim.x - 1) {
      control->blocks_done = 0;
      control->calls = calls + 1;
      control->meetings = meetings + (kTwoShot ? 2U : 1U);
    }
  }
}

using Kernel = void (*)(PeerView, Message, PeerTimes*);

template <typename Element, bool kTwoShot>
Kernel for_ranks(int num_ranks) {
  switch (num_ranks) {
    case 1:
      return peer_all_reduce<Element, 1, kTwoShot>;
    case 2:
      return peer_all_reduce<Element, 2, kTwoShot>;
    case 3:
      return peer_all_reduce<Element, 3, kTwoShot>;
    case 4:
      return peer_all_reduce<Element, 4, kTwoShot>;
    case 5:
      return peer_all_reduce<Element, 5, kTwoShot>;
    case 6:
      return peer_all_reduce<Element, 6, kTwoShot>;
    case 7:
      return peer_all_reduce<Element, 7, kTwoShot>;
    case 8:
      return peer_all_reduce<Element, 8, kTwoShot>;
    default:
      return nullptr;
  }
}

template <typename Element>
Kernel kernel_for(PeerAlgorithm algorithm, int num_ranks) {
  return algorithm == PeerAlgorithm::kOneShot ? for_ranks<Element, false>(num_ranks)
                                              : for_ranks<Element, true>(num_ranks);
}

}  // namespace

cudaError_t launch_peer_all_reduce(const PeerView& view, const PeerAllReduce& call,
                                   cudaStream_t stream) {
  const bool wide = call.type == PeerType::kFloat32;
  const Kernel kernel = wide ? kernel_for<float>(call.algorithm, view.num_ranks)
                             : kernel_for<__nv_bfloat16>(call.algorithm, view.num_ranks);
  const std::int64_t bytes = call.count * (wide ? 4 : 2);
  const auto aligned = [](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % kPeerAlignmentBytes == 0;
  };
  constexpr auto kPack = static_cast<std::int64_t>(kPeerAlignmentBytes);
  if (kernel == nullptr || call.count <= 0 || bytes % kPack != 0 || bytes > view.capacity_bytes ||
      view.capacity_bytes % kPack != 0 || !aligned(call.in) || !aligned(call.out) ||
      call.num_blocks < 0 || call.num_blocks > kMaxPeerBlocks) {
    return cudaErrorInvalidValue;
  }
  const Message message{static_cast<const uint4*>(call.in), static_cast<uint4*>(call.out),
                        bytes / kPack};
  std::int64_t blocks = call.num_blocks;
  if (blocks == 0) {
    const std::int64_t parts = call.algorithm == PeerAlgorithm::kTwoShot ? view.num_ranks : 1;
    const std::int64_t per_block = parts * kThreads;
    blocks = std::clamp<std::int64_t>((message.num_packs + per_block - 1) / per_block, 1,
                                      kMaxPeerBlocks);
  }
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(view, message, call.times);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
