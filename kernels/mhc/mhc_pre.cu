// Two launches. The first is the skinny GEMM: every block owns 128 of the 16384 columns, so that fn
// is read by all SMs at once, and leaves 24 partial sums and a sum of squares per token. The
// second, a block per token, adds them up and does the rest.
#include "kernels/common/dependent_launch.cuh"
#include "kernels/common/mma.cuh"
#include "kernels/elementwise/row_math.cuh"
#include "kernels/mhc/mhc_launch.h"

namespace fulcrum::kernels {
namespace {

constexpr int kGemmWarps = 4;
constexpr int kTokensPerTile = 16;
constexpr int kColumnsPerWarp = kMhcColumnsPerBlock / kGemmWarps;
constexpr int kMixTiles = kMhcMixes / 8;
constexpr int kPartials = kMhcMixes + 1;
static_assert(kColumnsPerWarp == 32);

// Nearest TF32 of a binary32 value (its low 13 bits cleared), as a register for mma.
__device__ __forceinline__ std::uint32_t to_tf32(float value) {
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

// partial[token][block][25]. BF16 inputs are exact in TF32; fn is split into two TF32 terms, which
// keeps 21 bits of it: the products are as good as binary32's.
__global__ void __launch_bounds__(32 * kGemmWarps) mix_kernel(MhcPreProblem problem) {
  __shared__ float sums[kGemmWarps][kTokensPerTile][kPartials];
  device::allow_dependent_launch();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const std::int64_t columns = std::int64_t{kMhcStreams} * problem.hidden;
  // The order of the columns does not matter to the sum: a lane takes four consecutive ones as the
  // depth positions `pair` and `pair + 4` of two instructions.
  const std::int64_t column0 = static_cast<std::int64_t>(blockIdx.x) * kMhcColumnsPerBlock +
                               warp * kColumnsPerWarp + 4 * pair;
  const int token0 = static_cast<int>(blockIdx.y) * kTokensPerTile;
  const int token_low = min(token0 + group, problem.num_tokens - 1);
  const int token_high = min(token0 + group + 8, problem.num_tokens - 1);
  const std::uint16_t* x_low = problem.residual + token_low * columns + column0;
  const std::uint16_t* x_high = problem.residual + token_high * columns + column0;

  constexpr int kSteps = kColumnsPerWarp / 16;
  float4 fn[kSteps][kMixTiles];
  uint2 x[kSteps][2];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
#pragma unroll
    for (int n = 0; n < kMixTiles; ++n) {
      fn[s][n] = __ldg(reinterpret_cast<const float4*>(problem.fn + (8 * n + group) * columns +
                                                       column0 + 16 * s));
    }
    x[s][0] = __ldg(reinterpret_cast<const uint2*>(x_low + 16 * s));
    x[s][1] = __ldg(reinterpret_cast<const uint2*>(x_high + 16 * s));
  }
  float acc[kMixTiles][4] = {};
  float squares[2] = {0.0F, 0.0F};
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    std::uint32_t v[2][4];  // [token half][column], BF16 widened to binary32
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      v[h][0] = x[s][h].x << 16;
      v[h][1] = x[s][h].x & 0xffff0000U;
      v[h][2] = x[s][h].y << 16;
      v[h][3] = x[s][h].y & 0xffff0000U;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        squares[h] = fmaf(float_from_bits(v[h][i]), float_from_bits(v[h][i]), squares[h]);
      }
    }
    const std::uint32_t a0[4] = {v[0][0], v[1][0], v[0][1], v[1][1]};
    const std::uint32_t a1[4] = {v[0][2], v[1][2], v[0][3], v[1][3]};
#pragma unroll
    for (int n = 0; n < kMixTiles; ++n) {
      const float f[4] = {fn[s][n].x, fn[s][n].y, fn[s][n].z, fn[s][n].w};
      std::uint32_t high[4];
      std::uint32_t low[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        high[i] = to_tf32(f[i]);
        low[i] = to_tf32(f[i] - float_from_bits(high[i]));
      }
      device::mma_tf32(acc[n], a0, low[0], low[1]);
      device::mma_tf32(acc[n], a1, low[2], low[3]);
      device::mma_tf32(acc[n], a0, high[0], high[1]);
      device::mma_tf32(acc[n], a1, high[2], high[3]);
    }
  }
#pragma unroll
  for (int n = 0; n < kMixTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[warp][group + 8 * (i / 2)][8 * n + 2 * pair + i % 2] = acc[n][i];
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    squares[h] += __shfl_xor_sync(0xffffffffU, squares[h], 1);
    squares[h] += __shfl_xor_sync(0xffffffffU, squares[h], 2);
    if (pair == 0) sums[warp][group + 8 * h][kMhcMixes] = squares[h];
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTokensPerTile * kPartials;
       i += 32 * kGemmWarps) {
    const int token = token0 + i / kPartials;
    if (token >= problem.num_tokens) break;
    float sum = 0.0F;
#pragma unroll
    for (int w = 0; w < kGemmWarps; ++w) sum += sums[w][i / kPartials][i % kPartials];
    problem.workspace[(static_cast<std::int64_t>(token) * gridDim.x + blockIdx.x) * kPartials +
                      i % kPartials] = sum;
  }
}

constexpr int kThreads = 512;
constexpr int kMaxChunks = 2;  // of 8 values per thread: hidden up to 8192

__device__ __forceinline__ float sigmoid(float x) { return 1.0F / (1.0F + __expf(-x)); }

__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));  // within one ulp (PTX ISA)
  return y;
}

// Normalising rows and columns only ever scales them: m[i][j] = row[i] k[i][j] column[j]. Carrying
// the two scale vectors instead of the matrix leaves 28 instructions per half iteration, in one
// thread without exchanges; the 40 dependent halves are latency, not work.
__device__ void sinkhorn(float (&k)[16], int num_iterations, float epsilon) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float largest = fmaxf(fmaxf(k[4 * i], k[4 * i + 1]), fmaxf(k[4 * i + 2], k[4 * i + 3]));
    float sum = 0.0F;
#pragma unroll
    for (int j = 0; j < 4; ++j) sum += k[4 * i + j] = __expf(k[4 * i + j] - largest);
    const float inverse = 1.0F / sum;
#pragma unroll
    for (int j = 0; j < 4; ++j) k[4 * i + j] = k[4 * i + j] * inverse + epsilon;
  }
  float row[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  float column[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  for (int iteration = 0; iteration < num_iterations; ++iteration) {
    if (iteration > 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float sum = fmaf(k[4 * i], column[0], k[4 * i + 1] * column[1]) +
                          fmaf(k[4 * i + 2], column[2], k[4 * i + 3] * column[3]);
        row[i] *= reciprocal(fmaf(row[i], sum, epsilon));
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float sum =
          fmaf(k[j], row[0], k[4 + j] * row[1]) + fmaf(k[8 + j], row[2], k[12 + j] * row[3]);
      column[j] *= reciprocal(fmaf(column[j], sum, epsilon));
    }
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) k[i] *= row[i / 4] * column[i % 4];
}

// Sum over the threads below kThreads; the solving warp is elsewhere and takes no part in the
// barriers.
__device__ __forceinline__ float sum_of_mixing_threads(float value, float* scratch) {
  value = device::warp_sum(value);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) scratch[warp] = value;
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
  return device::warp_sum(lane < kThreads / 32 ? scratch[lane] : 0.0F);
}

// Sixteen warps mix the streams; one more solves for the mixing matrix meanwhile.
template <int kChunks>
__global__ void __launch_bounds__(kThreads + 32)
    mix_streams_kernel(MhcPreProblem problem, int num_partials) {
  __shared__ float of_warp[kThreads / 32][kPartials];
  __shared__ float mixes[kPartials];
  __shared__ float scratch[32];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const bool mixes_streams = thread < kThreads;
  const std::int64_t token = blockIdx.x;
  const int chunks = problem.hidden / 8;

  // The streams do not depend on the first kernel: their loads are in flight while it ends.
  const uint4* streams =
      reinterpret_cast<const uint4*>(problem.residual) + token * kMhcStreams * chunks;
  uint4 raw[kChunks][kMhcStreams];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int chunk = thread + c * kThreads;
    if (!mixes_streams || chunk >= chunks) break;
#pragma unroll
    for (int s = 0; s < kMhcStreams; ++s)
      raw[c][s] = device::load_streaming(streams + s * chunks + chunk);
  }
  device::wait_for_first_kernel();

  const float* partials = problem.workspace + token * num_partials * kPartials;
  if (mixes_streams && lane < kPartials) {
    float sum = 0.0F;
#pragma unroll 8
    for (int p = warp; p < num_partials; p += kThreads / 32)
      sum += __ldcg(partials + p * kPartials + lane);
    of_warp[warp][lane] = sum;
  }
  __syncthreads();
  if (thread < kPartials) {
    float sum = 0.0F;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) sum += of_warp[w][thread];
    mixes[thread] = sum;
  }
  __syncthreads();
  const float inverse_rms = rsqrtf(
      mixes[kMhcMixes] / static_cast<float>(kMhcStreams * problem.hidden) + problem.norm_epsilon);
  const auto logit = [&](int i, int of_scale) {
    return mixes[i] * inverse_rms * problem.scale[of_scale] + problem.base[i];
  };
  if (!mixes_streams) {
    if (lane < kMhcStreams) {
      problem.post[token * kMhcStreams + lane] = 2.0F * sigmoid(logit(kMhcStreams + lane, 1));
    }
    float m[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) m[i] = logit(2 * kMhcStreams + i, 2);
    sinkhorn(m, problem.num_iterations, problem.epsilon);
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        reinterpret_cast<float4*>(problem.comb)[token * 4 + i] =
            make_float4(m[4 * i], m[4 * i + 1], m[4 * i + 2], m[4 * i + 3]);
      }
    }
    return;
  }
  float pre[kMhcStreams];
#pragma unroll
  for (int s = 0; s < kMhcStreams; ++s) pre[s] = sigmoid(logit(s, 0)) + problem.epsilon;

  float y[kChunks][8];
  float squares = 0.0F;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int chunk = thread + c * kThreads;
    if (chunk >= chunks) break;
    float v[kMhcStreams][8];
#pragma unroll
    for (int s = 0; s < kMhcStreams; ++s) device::unpack_bf16x8(raw[c][s], v[s]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      y[c][i] = pre[0] * v[0][i] + pre[1] * v[1][i] + pre[2] * v[2][i] + pre[3] * v[3][i];
      squares = fmaf(y[c][i], y[c][i], squares);
    }
  }
  const float mean = sum_of_mixing_threads(squares, scratch) / static_cast<float>(problem.hidden);
  const float scale = rsqrtf(mean + problem.norm_epsilon);
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int chunk = thread + c * kThreads;
    if (chunk >= chunks) break;
    float w[8];
    device::unpack_bf16x8(__ldg(reinterpret_cast<const uint4*>(problem.norm_weight) + chunk), w);
#pragma unroll
    for (int i = 0; i < 8; ++i) w[i] *= y[c][i] * scale;
    reinterpret_cast<uint4*>(problem.out)[token * chunks + chunk] = device::pack_bf16x8(w);
  }
}

}  // namespace

cudaError_t mhc_pre(const MhcPreProblem& problem, cudaStream_t stream) {
  if (problem.num_tokens <= 0 || problem.hidden <= 0 || problem.hidden % 256 != 0 ||
      problem.hidden > 8 * kThreads * kMaxChunks || problem.num_iterations < 1) {
    return cudaErrorInvalidValue;
  }
  const int blocks = kMhcStreams * problem.hidden / kMhcColumnsPerBlock;
  const dim3 grid(
      static_cast<unsigned>(blocks),
      static_cast<unsigned>((problem.num_tokens + kTokensPerTile - 1) / kTokensPerTile));
  mix_kernel<<<grid, 32 * kGemmWarps, 0, stream>>>(problem);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  const auto mix_streams =
      problem.hidden <= 8 * kThreads ? mix_streams_kernel<1> : mix_streams_kernel<kMaxChunks>;
  return launch_dependent(mix_streams, static_cast<unsigned>(problem.num_tokens), kThreads + 32, 0,
                          stream, problem, blocks);
}

}  // namespace fulcrum::kernels
