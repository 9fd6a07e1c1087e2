// A block per request, a thread per dimension of the row: a dimension's state is written and pooled
// by one thread, so consecutive tokens of a request need no barrier between them.
#include "kernels/common/warp.cuh"
#include "kernels/elementwise/kv_store.cuh"
#include "kernels/indexer/index_key.cuh"
#include "kernels/indexer/indexer_launch.h"

namespace fulcrum::kernels {
namespace {

// Softmax-weighted mean, kept up to date as positions arrive.
struct Pool {
  float largest = -INFINITY;
  float weight = 0.0F;
  float value = 0.0F;
};

// Adds `kCount` positions at once: their loads are independent and the rescaling is paid once.
template <int kCount>
__device__ __forceinline__ void pool_positions(Pool& pool, const float (&scores)[kCount],
                                               const float (&values)[kCount]) {
  float largest = pool.largest;
#pragma unroll
  for (int i = 0; i < kCount; ++i) largest = fmaxf(largest, scores[i]);
  if (largest == -INFINITY) return;
  const float rescale = __expf(pool.largest - largest);
  pool.largest = largest;
  pool.weight *= rescale;
  pool.value *= rescale;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float weight = __expf(scores[i] - largest);
    pool.weight += weight;
    pool.value = fmaf(weight, values[i], pool.value);
  }
}

// Pools positions begin .. begin + ratio - 1 of one dimension; kBatch of them have their loads in
// flight together.
template <int kBatch>
__device__ __forceinline__ void pool_group(Pool& pool, const float* values, const float* scores,
                                           int begin, int ratio, int ring_rows,
                                           std::int64_t width) {
  for (int p = begin; p < begin + ratio; p += kBatch) {
    float score[kBatch];
    float value[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const std::int64_t at = static_cast<std::int64_t>((p + i) % ring_rows) * width;
      score[i] = scores[at];
      value[i] = values[at];
    }
    pool_positions(pool, score, value);
  }
}

template <CompressedRow kKind>
__global__ void __launch_bounds__(compressor_dim(kKind))
    compress_kernel(CompressorProblem problem) {
  constexpr int kDim = compressor_dim(kKind);
  __shared__ float scratch[32];
  __shared__ __align__(16) float pooled_row[kDim];
  const CompressorShape& shape = problem.shape;
  const int dim = static_cast<int>(threadIdx.x);
  const int lane = dim % 32;
  const std::int64_t request = blockIdx.x;
  const int halves = shape.overlap ? 2 : 1;
  const int width = halves * kDim;
  const std::int64_t ring = std::int64_t{problem.state_slots[request]} * shape.ring_rows * width;
  float* values = problem.value_ring + ring + dim;
  float* scores = problem.score_ring + ring + dim;
  const int first_position = problem.first_positions[request];

  for (int t = 0; t < shape.tokens_per_request; ++t) {
    const int position = first_position + t;
    const std::int64_t token = request * shape.tokens_per_request + t;
    const float* projected = problem.projected + token * 2 * width + dim;
    const float* ape =
        problem.ape + static_cast<std::int64_t>(position % shape.ratio) * width + dim;
    const std::int64_t slot = static_cast<std::int64_t>(position % shape.ring_rows) * width;
    for (int h = 0; h < halves; ++h) {
      values[slot + h * kDim] = projected[h * kDim];
      scores[slot + h * kDim] = projected[width + h * kDim] + ape[h * kDim];
    }
    if ((position + 1) % shape.ratio != 0) continue;

    Pool pool;
    for (int h = 0; h < halves; ++h) {
      // With overlap: half 0 of the group before, then half 1 of the group that closes here.
      const int begin = position + 1 - shape.ratio * (halves - h);
      if (begin < 0) continue;  // The request's first group has none before it.
      if (shape.ratio % 16 == 0) {
        pool_group<16>(pool, values + h * kDim, scores + h * kDim, begin, shape.ratio,
                       shape.ring_rows, width);
      } else {
        pool_group<4>(pool, values + h * kDim, scores + h * kDim, begin, shape.ratio,
                      shape.ring_rows, width);
      }
    }
    const float pooled = pool.value / pool.weight;
    const float mean = device::block_sum(pooled * pooled, scratch) / kDim;
    pooled_row[dim] =
        pooled * rsqrtf(mean + problem.epsilon) * decode_bf16(problem.norm_weight[dim]);
    __syncthreads();
    const std::int32_t row = problem.rows[token];
    if (dim < 32 && row >= 0) {
      const float2* cos_sin =
          reinterpret_cast<const float2*>(problem.cos_sin) +
          static_cast<std::int64_t>(position + 1 - shape.ratio) * (kIndexRopeValues / 2);
      if constexpr (kKind == CompressedRow::kAttention) {
        float v[16];
#pragma unroll
        for (int i = 0; i < 16; ++i) v[i] = pooled_row[16 * lane + i];
        device::store_kv_row(v, cos_sin, problem.pool, row, lane);
      } else {
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = pooled_row[4 * lane + i];
        float scale = 0.0F;
        const std::uint32_t codes = device::encode_index_row(v, cos_sin, lane, &scale);
        std::uint8_t* pages = problem.index_pool.pages;
        reinterpret_cast<std::uint32_t*>(pages + index_code_offset(problem.index_pool, row))[lane] =
            codes;
        if (lane == 0) {
          *reinterpret_cast<float*>(pages + index_scale_offset(problem.index_pool, row)) = scale;
        }
      }
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t compress(const CompressorProblem& problem, cudaStream_t stream) {
  const CompressorShape& shape = problem.shape;
  const int pooled = (shape.overlap ? 2 : 1) * shape.ratio;
  if (shape.num_requests <= 0 || shape.tokens_per_request <= 0 || shape.ratio <= 0 ||
      shape.ratio % 4 != 0 || shape.ring_rows < pooled) {
    return cudaErrorInvalidValue;
  }
  const unsigned blocks = static_cast<unsigned>(shape.num_requests);
  if (shape.kind == CompressedRow::kAttention) {
    compress_kernel<CompressedRow::kAttention><<<blocks, kKvHeadDim, 0, stream>>>(problem);
  } else {
    compress_kernel<CompressedRow::kIndexKey><<<blocks, kIndexDim, 0, stream>>>(problem);
  }
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
