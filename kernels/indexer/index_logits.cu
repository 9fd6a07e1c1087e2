// Keys are the M of m16n8k16, heads the N. E4M3 codes become FP16 by moving bits (a factor 2^-8 too
// small on either side, exact, subnormals included), which every architecture does at full speed. A
// warp takes its 32 keys from memory straight into fragments: the order of the 128 dimensions does
// not matter to the sum, so a lane's two 16-byte loads of a row serve all eight depth steps. The 64
// heads wait in shared memory in fragment order.
#include "kernels/common/mma.cuh"
#include "kernels/indexer/indexer_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kKeyTiles = 2;  // of 16 keys per warp
constexpr int kKeysPerWarp = 16 * kKeyTiles;
constexpr int kKeysPerBlock = kKeysPerWarp * kWarps;
constexpr int kHeadTiles = kIndexHeads / 8;
constexpr int kSteps = kIndexDim / 16;
constexpr float kRebias = 65536.0F;  // 2^8 for the key, 2^8 for the query
static_assert(kIndexPageRows % kKeysPerWarp == 0, "a warp's keys lie in one page");

// Four E4M3 codes -> two FP16 pairs times 2^-8: codes 1 and 3, then 0 and 2. Which of a lane's
// codes is which depth position does not matter as long as key and query agree.
__device__ __forceinline__ uint2 spread_to_f16(std::uint32_t codes) {
  const std::uint32_t even = codes << 8;
  return make_uint2((codes & 0x80008000U) | ((codes >> 1) & 0x3f803f80U),
                    (even & 0x80008000U) | ((even >> 1) & 0x3f803f80U));
}

struct Fragments {
  std::uint32_t step[kSteps][2];  // of one row: a lane's two register pairs per depth step
};

struct RawRow {
  uint4 chunk[2];
};

__device__ __forceinline__ RawRow load_row(const std::uint8_t* row, int pair) {
  return {{device::load_streaming(row + 16 * pair), device::load_streaming(row + 64 + 16 * pair)}};
}

__device__ __forceinline__ Fragments row_fragments(const RawRow& raw) {
  Fragments f;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const std::uint32_t words[4] = {raw.chunk[c].x, raw.chunk[c].y, raw.chunk[c].z, raw.chunk[c].w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint2 pairs = spread_to_f16(words[i]);
      f.step[4 * c + i][0] = pairs.x;
      f.step[4 * c + i][1] = pairs.y;
    }
  }
  return f;
}

__global__ void __launch_bounds__(kThreads, 2)
    index_logits_kernel(IndexLogitsProblem problem, int keys_per_chunk) {
  // [head tile][pair of steps][lane]: both registers of two depth steps.
  __shared__ uint4 query[kHeadTiles][kSteps / 2][32];
  __shared__ float2 weights[kHeadTiles][4];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const std::int64_t token = blockIdx.y;
  const int count = min(problem.key_counts[token], problem.max_keys);
  const int begin = static_cast<int>(blockIdx.x) * keys_per_chunk;
  const int end = min(begin + keys_per_chunk, count);
  if (begin >= end) return;

  {
    static_assert(kHeadTiles == kWarps);
    const std::int64_t head = token * kIndexHeads + 8 * warp + group;
    const Fragments f = row_fragments(load_row(problem.query + head * kIndexDim, pair));
#pragma unroll
    for (int s = 0; s < kSteps; s += 2) {
      query[warp][s / 2][lane] =
          make_uint4(f.step[s][0], f.step[s][1], f.step[s + 1][0], f.step[s + 1][1]);
    }
    if (threadIdx.x < kIndexHeads / 2) {
      weights[threadIdx.x / 4][threadIdx.x % 4] =
          reinterpret_cast<const float2*>(problem.weights + token * kIndexHeads)[threadIdx.x];
    }
  }
  __syncthreads();

  const std::int32_t* pages = problem.page_table + token * (problem.max_keys >> kIndexPageRowsLog2);
  float* logits = problem.logits + token * problem.max_keys;
  for (int first = begin + warp * kKeysPerWarp; first < end; first += kKeysPerBlock) {
    const std::uint8_t* page =
        problem.pool.pages + pages[first >> kIndexPageRowsLog2] * problem.pool.page_stride_bytes;
    const int place = first & (kIndexPageRows - 1);
    RawRow raw[kKeyTiles][2];
    float key_scale[kKeyTiles][2];
#pragma unroll
    for (int m = 0; m < kKeyTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // Rows of the page beyond `end` exist in memory; their results are not stored.
        const int row = place + 16 * m + 8 * h + group;
        raw[m][h] = load_row(page + row * kIndexDim, pair);
        key_scale[m][h] =
            *reinterpret_cast<const float*>(page + kIndexDim * kIndexPageRows + 4 * row);
      }
    }
    Fragments key[kKeyTiles][2];
#pragma unroll
    for (int m = 0; m < kKeyTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) key[m][h] = row_fragments(raw[m][h]);
    }
    float sum[kKeyTiles][2] = {};
#pragma unroll 2
    for (int n = 0; n < kHeadTiles; ++n) {
      float c[kKeyTiles][4] = {};
#pragma unroll
      for (int s = 0; s < kSteps; s += 2) {
        const uint4 b = query[n][s / 2][lane];
#pragma unroll
        for (int m = 0; m < kKeyTiles; ++m) {
          const std::uint32_t a0[4] = {key[m][0].step[s][0], key[m][1].step[s][0],
                                       key[m][0].step[s][1], key[m][1].step[s][1]};
          const std::uint32_t a1[4] = {key[m][0].step[s + 1][0], key[m][1].step[s + 1][0],
                                       key[m][0].step[s + 1][1], key[m][1].step[s + 1][1]};
          device::mma_f16(c[m], a0, b.x, b.y);
          device::mma_f16(c[m], a1, b.z, b.w);
        }
      }
      const float2 w = weights[n][pair];
#pragma unroll
      for (int m = 0; m < kKeyTiles; ++m) {
        sum[m][0] = fmaf(w.x, fmaxf(c[m][0], 0.0F), fmaf(w.y, fmaxf(c[m][1], 0.0F), sum[m][0]));
        sum[m][1] = fmaf(w.x, fmaxf(c[m][2], 0.0F), fmaf(w.y, fmaxf(c[m][3], 0.0F), sum[m][1]));
      }
    }
#pragma unroll
    for (int m = 0; m < kKeyTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float logit = sum[m][h];
        logit += __shfl_xor_sync(0xffffffffU, logit, 1);
        logit += __shfl_xor_sync(0xffffffffU, logit, 2);
        const int key_index = first + 16 * m + 8 * h + group;
        if (pair == 0 && key_index < end) logits[key_index] = logit * (key_scale[m][h] * kRebias);
      }
    }
  }
}

}  // namespace

cudaError_t index_logits(const IndexLogitsProblem& problem, cudaStream_t stream) {
  if (problem.num_tokens <= 0 || problem.max_keys <= 0 || problem.max_keys % kIndexPageRows != 0) {
    return cudaErrorInvalidValue;
  }
  int device = 0;
  int num_sms = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return error;
  // At most one wave of two blocks per SM (a second one of a few blocks would double the time), and
  // as few set-ups of the query as that allows.
  constexpr int kBlocksPerSm = 2;
  const int slices = (problem.max_keys + kKeysPerBlock - 1) / kKeysPerBlock;
  const int slots = kBlocksPerSm * num_sms;
  const int wanted = slots < problem.num_tokens ? 1 : slots / problem.num_tokens;
  const int slices_per_chunk = (slices + wanted - 1) / wanted;
  const int chunks = (slices + slices_per_chunk - 1) / slices_per_chunk;
  const dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(problem.num_tokens));
  index_logits_kernel<<<grid, kThreads, 0, stream>>>(problem, slices_per_chunk * kKeysPerBlock);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
