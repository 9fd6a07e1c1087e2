// The fallback without reuse: every (token, expert) slot streams its expert's rows by itself. A
// warp takes one output column at a time (gate and up together for w13), lanes stride along k, FMA
// on CUDA cores.
#include "kernels/common/formats.h"
#include "kernels/common/mma.cuh"
#include "kernels/moe/moe_parts.h"

namespace fulcrum::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kColumnsPerBlock = 32;

template <Fp4Format kFormat>
__device__ __forceinline__ float decode_scale(std::uint8_t code) {
  return kFormat == Fp4Format::kMxfp4 ? decode_e8m0(code) : decode_e4m3(code);
}

// Sum over one weight row and x in shared memory; a lane takes 32 columns (16 bytes of codes) at a
// time.
template <Fp4Format kFormat>
__device__ float row_dot(const std::uint8_t* codes, const std::uint8_t* scales, const float* x,
                         int k) {
  constexpr int kGroup = fp4_group(kFormat);
  const int lane = threadIdx.x % 32;
  float sum = 0;
  for (int column = 32 * lane; column < k; column += 32 * 32) {
    const uint4 v = device::load_streaming(codes + column / 2);
    const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float part = 0;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        part += decode_e2m1(static_cast<std::uint8_t>((words[i] >> (4 * n)) & 15u)) *
                x[column + 8 * i + n];
      }
      sum += part * decode_scale<kFormat>(__ldg(scales + (column + 8 * i) / kGroup));
    }
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  return sum;
}

template <Fp4Format kFormat, bool kGateUp>
__global__ void __launch_bounds__(kThreads)
    moe_per_slot_kernel(const MoeArgs args, const MoeWorkspace w) {
  extern __shared__ float x[];
  const int slot = blockIdx.y;
  const int expert = args.expert_ids[slot];
  const int width = args.shape.width;
  const int k = kGateUp ? args.shape.hidden : width;
  const std::uint16_t* source =
      kGateUp ? args.x + static_cast<std::int64_t>(slot / args.shape.top_k) * k
              : w.activation + static_cast<std::int64_t>(slot) * k;
  for (int i = threadIdx.x; i < k; i += kThreads) x[i] = decode_bf16(source[i]);
  __syncthreads();
  const int rows = kGateUp ? 2 * width : args.shape.hidden;
  const std::uint8_t* codes = (kGateUp ? args.weights.gate_up : args.weights.down) +
                              static_cast<std::int64_t>(expert) * rows * (k / 2);
  const std::uint8_t* scales = (kGateUp ? args.weights.gate_up_scale : args.weights.down_scale) +
                               static_cast<std::int64_t>(expert) * rows * (k / fp4_group(kFormat));
  float global = 1;
  if constexpr (kFormat == Fp4Format::kNvfp4) {
    global = __ldg((kGateUp ? args.weights.gate_up_global : args.weights.down_global) + expert);
  }
  const auto dot = [&](int row) {
    return global * row_dot<kFormat>(
                        codes + static_cast<std::int64_t>(row) * (k / 2),
                        scales + static_cast<std::int64_t>(row) * (k / fp4_group(kFormat)), x, k);
  };
  const int column0 = blockIdx.x * kColumnsPerBlock;
  for (int c = threadIdx.x / 32; c < kColumnsPerBlock; c += kThreads / 32) {
    const int column = column0 + c;
    if constexpr (kGateUp) {
      const float gate = fminf(dot(column), args.swiglu_limit);
      const float up = fminf(fmaxf(dot(width + column), -args.swiglu_limit), args.swiglu_limit);
      if (threadIdx.x % 32 == 0) {
        w.activation[static_cast<std::int64_t>(slot) * width + column] =
            encode_bf16(gate / (1.0f + __expf(-gate)) * up);
      }
    } else {
      const float value = dot(column);
      if (threadIdx.x % 32 == 0) {
        w.slot_out[static_cast<std::int64_t>(slot) * args.shape.hidden + column] = value;
      }
    }
  }
}

template <Fp4Format kFormat, bool kGateUp>
cudaError_t launch(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream) {
  const int columns = kGateUp ? args.shape.width : args.shape.hidden;
  const int k = kGateUp ? args.shape.hidden : args.shape.width;
  const int shared_bytes = k * static_cast<int>(sizeof(float));
  const auto kernel = moe_per_slot_kernel<kFormat, kGateUp>;
  if (const cudaError_t code =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
      code != cudaSuccess) {
    return code;
  }
  const dim3 grid(static_cast<unsigned>(columns / kColumnsPerBlock),
                  static_cast<unsigned>(args.shape.tokens * args.shape.top_k));
  kernel<<<grid, kThreads, static_cast<std::size_t>(shared_bytes), stream>>>(args, w);
  return cudaGetLastError();
}

template <Fp4Format kFormat>
cudaError_t launch_both(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream) {
  const cudaError_t code = launch<kFormat, true>(args, w, stream);
  return code == cudaSuccess ? launch<kFormat, false>(args, w, stream) : code;
}

}  // namespace

cudaError_t launch_moe_per_slot(const MoeArgs& args, cudaStream_t stream) {
  // A grid has at most 65535 blocks in y.
  if (!moe_shape_ok(args.shape) || args.shape.tokens * args.shape.top_k > 65535) {
    return cudaErrorInvalidValue;
  }
  const MoeWorkspace w = moe_workspace(args.shape, args.workspace);
  const cudaError_t code = args.weights.format == Fp4Format::kMxfp4
                               ? launch_both<Fp4Format::kMxfp4>(args, w, stream)
                               : launch_both<Fp4Format::kNvfp4>(args, w, stream);
  return code == cudaSuccess ? launch_moe_combine(args, w, stream) : code;
}

}  // namespace fulcrum::kernels
