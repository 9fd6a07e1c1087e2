// Radix select, one block per token: a histogram of the leading bits finds the bin that holds the
// k-th value; when that bin is small its members are kept in shared memory and the remaining bits
// are resolved there, otherwise from the row again. Two reads of the row in the usual case, four at
// most.
#include "kernels/common/warp.cuh"
#include "kernels/indexer/indexer_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 1024;
constexpr int kRounds = 3;
constexpr int digit_bits(int round) { return round < kRounds - 1 ? 11 : 10; }
constexpr int kBins = 1 << 11;
constexpr int kMaxCandidates = 4096;

struct Shared {
  std::uint32_t histogram[kBins];
  std::uint32_t candidate_key[kMaxCandidates];
  std::int32_t candidate_index[kMaxCandidates];
  std::uint32_t of_warp[kThreads / 32];
  std::uint32_t digit;  // of the bin that holds the k-th largest
  std::uint32_t above;  // members of the bins above it
  std::uint32_t in_bin;
  std::uint32_t num_out;
  std::uint32_t num_candidates;
  std::uint32_t num_equal;
};

// Larger floats have larger keys.
__device__ __forceinline__ std::uint32_t key_of(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return bits ^ ((bits >> 31) != 0 ? 0xffffffffU : 0x80000000U);
}

// Finds the bin that holds the `wanted`-th largest counted member (1-based). All threads of the
// block.
__device__ void find_bin(Shared& shared, std::uint32_t wanted) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  // Thread t owns the two bins kBins - 1 - 2 t and the one below: from the top down.
  const int high_bin = kBins - 1 - 2 * thread;
  const std::uint32_t high = shared.histogram[high_bin];
  const std::uint32_t low = shared.histogram[high_bin - 1];
  std::uint32_t inclusive = high + low;
#pragma unroll
  for (int offset = 1; offset < 32; offset <<= 1) {
    const std::uint32_t other = __shfl_up_sync(0xffffffffU, inclusive, offset);
    if (lane >= offset) inclusive += other;
  }
  if (lane == 31) shared.of_warp[warp] = inclusive;
  __syncthreads();
  std::uint32_t before = inclusive - high - low;
  for (int w = 0; w < warp; ++w) before += shared.of_warp[w];
  if (before < wanted && wanted <= before + high) {
    shared.digit = static_cast<std::uint32_t>(high_bin);
    shared.above = before;
    shared.in_bin = high;
  } else if (before + high < wanted && wanted <= before + high + low) {
    shared.digit = static_cast<std::uint32_t>(high_bin - 1);
    shared.above = before + high;
    shared.in_bin = low;
  }
  __syncthreads();
}

// Calls visit(key, index) for every logit of the row, in the block's threads; 16-byte loads where
// rows allow them.
template <typename Visit>
__device__ __forceinline__ void for_each_logit(const float* row, int count, bool aligned,
                                               Visit visit) {
  int done = 0;
  if (aligned) {
    constexpr int kUnroll = 4;
    const float4* vectors = reinterpret_cast<const float4*>(row);
    const int num_vectors = count / 4;
    for (int first = static_cast<int>(threadIdx.x); first < num_vectors;
         first += kUnroll * kThreads) {
      float4 v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int i = first + u * kThreads;
        if (i < num_vectors) v[u] = __ldg(vectors + i);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int i = first + u * kThreads;
        if (i >= num_vectors) break;
        visit(key_of(v[u].x), 4 * i);
        visit(key_of(v[u].y), 4 * i + 1);
        visit(key_of(v[u].z), 4 * i + 2);
        visit(key_of(v[u].w), 4 * i + 3);
      }
    }
    done = 4 * num_vectors;
  }
  for (int i = done + static_cast<int>(threadIdx.x); i < count; i += kThreads)
    visit(key_of(row[i]), i);
}

__global__ void __launch_bounds__(kThreads) top_k_kernel(TopKProblem problem) {
  __shared__ Shared shared;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t token = blockIdx.x;
  const int count = min(problem.key_counts[token], problem.max_keys);
  const float* row = problem.logits + token * problem.max_keys;
  std::int32_t* out = problem.indices + token * problem.top_k;
  const bool aligned = problem.max_keys % 4 == 0;
  if (count <= problem.top_k) {
    for (int i = thread; i < problem.top_k; i += kThreads) out[i] = i < count ? i : -1;
    return;
  }
  if (thread == 0) {
    shared.num_out = 0;
    shared.num_candidates = 0;
    shared.num_equal = 0;
  }

  std::uint32_t wanted = static_cast<std::uint32_t>(problem.top_k);
  std::uint32_t prefix = 0;  // the leading bits found so far, in place
  std::uint32_t mask = 0;
  int shift = 32;
  bool from_candidates = false;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    shift -= digit_bits(round);
    const std::uint32_t digit_mask = (1U << digit_bits(round)) - 1U;
    for (int i = thread; i < kBins; i += kThreads) shared.histogram[i] = 0;
    __syncthreads();
    const auto count_key = [&](std::uint32_t key, int) {
      if ((key & mask) == prefix) atomicAdd(&shared.histogram[(key >> shift) & digit_mask], 1U);
    };
    if (from_candidates) {
      for (int i = thread; i < static_cast<int>(shared.num_candidates); i += kThreads) {
        count_key(shared.candidate_key[i], i);
      }
    } else {
      for_each_logit(row, count, aligned, count_key);
    }
    __syncthreads();
    find_bin(shared, wanted);
    prefix |= shared.digit << shift;
    mask |= digit_mask << shift;
    wanted -= shared.above;
    if (round == 0 && shared.in_bin <= kMaxCandidates) {
      from_candidates = true;
      for_each_logit(row, count, aligned, [&](std::uint32_t key, int i) {
        if ((key & mask) > prefix) {
          out[atomicAdd(&shared.num_out, 1U)] = i;
        } else if ((key & mask) == prefix) {
          const std::uint32_t slot = atomicAdd(&shared.num_candidates, 1U);
          shared.candidate_key[slot] = key;
          shared.candidate_index[slot] = i;
        }
      });
      __syncthreads();
    }
  }
  // `prefix` is the k-th largest key; `wanted` of its equals are kept.
  const auto keep = [&](std::uint32_t key, std::int32_t index) {
    if (key > prefix || (key == prefix && atomicAdd(&shared.num_equal, 1U) < wanted)) {
      out[atomicAdd(&shared.num_out, 1U)] = index;
    }
  };
  if (from_candidates) {
    for (int i = thread; i < static_cast<int>(shared.num_candidates); i += kThreads) {
      keep(shared.candidate_key[i], shared.candidate_index[i]);
    }
  } else {
    for_each_logit(row, count, aligned, keep);
  }
}

}  // namespace

cudaError_t top_k(const TopKProblem& problem, cudaStream_t stream) {
  if (problem.num_tokens <= 0 || problem.max_keys <= 0 || problem.top_k <= 0) {
    return cudaErrorInvalidValue;
  }
  static_assert(2 * kThreads == kBins);
  top_k_kernel<<<static_cast<unsigned>(problem.num_tokens), kThreads, 0, stream>>>(problem);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
