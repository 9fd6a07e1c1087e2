// Indexer logits on Hopper: the E4M3 codes go to the tensor cores as they are. A page of 64 keys is
// the 64 x 128 operand A, the 64 heads are B; a block of one warpgroup walks pages that cp.async
// brings in three ahead.
//
// Per page and SM at 1.755 GHz: 8448 bytes at 1/132 of 4.58 TB/s take 427 cycles, the 64 x 64 x 128
// product 123 at the E4M3 peak, ReLU and head weights about 100 issue cycles of four warps: reading
// dominates. The portable kernel needs 64 mma.sync of FP16 per 16 keys, 6.4 cycles a key at best,
// as long as the read alone.
//
// FP8 wgmma sums with about 14 fractional bits (DeepSeek-V3 technical report, section 3.3.2), which
// is what engines on this architecture compute too.
#include "kernels/common/async_copy.cuh"
#include "kernels/common/wgmma.cuh"
#include "kernels/indexer/indexer_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kStages = 4;
constexpr int kBlocksPerSm = 5;
constexpr int kMaxPagesPerBlock = kThreads;  // their numbers are fetched once, by one thread each
constexpr int kTileBytes = kIndexDim * kIndexPageRows;
static_assert(kIndexDim == 128 && kIndexPageRows == 64 && kIndexHeads == 64);

struct Shared {
  alignas(1024) std::uint8_t query[kIndexHeads * kIndexDim];
  alignas(1024) std::uint8_t keys[kStages][kTileBytes];
  alignas(16) float scales[kStages][kIndexPageRows];
  std::int32_t page_numbers[kMaxPagesPerBlock];
};

__device__ __forceinline__ void copy_tile(std::uint8_t* tile, const std::uint8_t* rows) {
#pragma unroll
  for (int i = 0; i < kTileBytes / 16 / kThreads; ++i) {
    const int chunk = static_cast<int>(threadIdx.x) + i * kThreads;
    copy_async<16>(tile + device::swizzled_offset(chunk / 8, chunk % 8), rows + 16 * chunk);
  }
}

__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    index_logits_sm90_kernel(IndexLogitsProblem problem, int pages_per_block) {
  extern __shared__ unsigned char shared_bytes[];
  // The swizzle needs 1024-byte tiles; dynamic shared memory promises 16. An offset, not a rounded
  // address: the compiler must still see that this is shared memory.
  auto& shared =
      *reinterpret_cast<Shared*>(shared_bytes + (-device::shared_address(shared_bytes) & 1023U));
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int pair = lane % 4;
  const std::int64_t token = blockIdx.y;
  const int count = min(problem.key_counts[token], problem.max_keys);
  const int num_pages = (count + kIndexPageRows - 1) / kIndexPageRows;
  const int begin = static_cast<int>(blockIdx.x) * pages_per_block;
  const int end = min(begin + pages_per_block, num_pages);
  if (begin >= end) return;
  const std::int32_t* table = problem.page_table + token * (problem.max_keys / kIndexPageRows);

  if (thread < end - begin) shared.page_numbers[thread] = table[begin + thread];
  __syncthreads();
  const auto fetch = [&](int page, int stage) {
    if (page < end) {
      const std::uint8_t* rows =
          problem.pool.pages + shared.page_numbers[page - begin] * problem.pool.page_stride_bytes;
      copy_tile(shared.keys[stage], rows);
      if (thread < kIndexPageRows / 4) {
        copy_async<16>(&shared.scales[stage][4 * thread], rows + kTileBytes + 16 * thread);
      }
    }
    commit_copies();
  };
  copy_tile(shared.query, problem.query + token * kIndexHeads * kIndexDim);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) fetch(begin + s, s);
  float2 weight[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    weight[j] = __ldg(
        reinterpret_cast<const float2*>(problem.weights + token * kIndexHeads + 8 * j) + pair);
  }

  int stage = 0;
  for (int page = begin; page < end; ++page) {
    wait_copies<kStages - 2>();
    device::fence_for_async_proxy();
    __syncthreads();  // All parts of the tile are there, and the tile before it has been read by
                      // all.
    float d[32];
    const std::uint64_t a = device::swizzled_descriptor(shared.keys[stage]);
    const std::uint64_t b = device::swizzled_descriptor(shared.query);
    device::warpgroup_arrive();
#pragma unroll
    for (int k = 0; k < kIndexDim / 32; ++k) {
      device::wgmma_64x64x32(d, a + k * device::kDescriptorStep32,
                             b + k * device::kDescriptorStep32, k > 0);
    }
    device::warpgroup_commit();
    fetch(page + kStages - 1, (stage + kStages - 1) % kStages);
    const int row = 16 * (thread / 32) + lane / 4;
    const float scale[2] = {shared.scales[stage][row], shared.scales[stage][row + 8]};
    device::warpgroup_wait();
    float sum[2] = {0.0F, 0.0F};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        sum[h] = fmaf(weight[j].x, fmaxf(d[4 * j + 2 * h], 0.0F),
                      fmaf(weight[j].y, fmaxf(d[4 * j + 2 * h + 1], 0.0F), sum[h]));
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sum[h] += __shfl_xor_sync(0xffffffffU, sum[h], 1);
      sum[h] += __shfl_xor_sync(0xffffffffU, sum[h], 2);
      const int key = page * kIndexPageRows + row + 8 * h;
      if (pair == 0 && key < count) {
        problem.logits[token * problem.max_keys + key] = sum[h] * scale[h];
      }
    }
    stage = (stage + 1) % kStages;
  }
}

}  // namespace

cudaError_t index_logits_sm90(const IndexLogitsProblem& problem, cudaStream_t stream) {
  if (problem.num_tokens <= 0 || problem.max_keys <= 0 || problem.max_keys % kIndexPageRows != 0) {
    return cudaErrorInvalidValue;
  }
  constexpr int kSharedBytes = static_cast<int>(sizeof(Shared)) + 1024;
  int device = 0;
  int num_sms = 0;
  cudaError_t error = cudaFuncSetAttribute(
      index_logits_sm90_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return error;
  const int pages = problem.max_keys / kIndexPageRows;
  // At most one wave: a second one of a few blocks would double the time.
  const int slots = kBlocksPerSm * num_sms;
  const int blocks_per_token = slots < problem.num_tokens ? 1 : slots / problem.num_tokens;
  const int even_share = (pages + blocks_per_token - 1) / blocks_per_token;
  const int pages_per_block = even_share < kMaxPagesPerBlock ? even_share : kMaxPagesPerBlock;
  const dim3 grid(static_cast<unsigned>((pages + pages_per_block - 1) / pages_per_block),
                  static_cast<unsigned>(problem.num_tokens));
  index_logits_sm90_kernel<<<grid, kThreads, kSharedBytes, stream>>>(problem, pages_per_block);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
