#include "kernels/common/formats.h"
#include "kernels/sm_120/mxfp_gemm.h"

namespace fulcrum::kernels {
namespace {

constexpr int kWarps = 4;

// PTX ISA, "Warp-level block scaling": scale_vec::1X gives each row of A and column of B one scale
// per 32 columns of k. Lanes t = 0 and 1 of a quad hold those of rows g and g + 8, lane 0 that of
// column g (selectors 0).
__device__ __forceinline__ void mma_mxf8f6f4(float (&d)[4], const std::uint32_t (&a)[4],
                                             const std::uint32_t (&b)[2], std::uint32_t scale_a,
                                             std::uint32_t scale_b) {
  asm volatile(
      "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e2m1.e4m3."
      "f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {%11,%11}, {%12}, "
      "{%11,%11};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scale_a),
        "h"(static_cast<std::uint16_t>(0)), "r"(scale_b));
}

// A warp takes 16 weight rows x 8 tokens. Lane t owns columns 8t..8t+7 of each 32: one word of E2M1
// codes per row. The instruction wants each code in bits 5..2 of a byte, so even and odd columns
// fall into different registers; x follows the same order.
__global__ void __launch_bounds__(32 * kWarps) mxfp_gemm_kernel(const MxfpGemmArgs args) {
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const int row = 16 * (blockIdx.x * kWarps + threadIdx.x / 32) + g;
  const int token = 8 * blockIdx.y + g;
  const int groups = args.k / 32;
  const auto* top = reinterpret_cast<const std::uint32_t*>(
      args.weight + static_cast<std::int64_t>(row) * (args.k / 2));
  const auto* bottom = reinterpret_cast<const std::uint32_t*>(
      args.weight + static_cast<std::int64_t>(row + 8) * (args.k / 2));
  const int x_row = min(token, args.m - 1);
  const auto* x =
      reinterpret_cast<const uint2*>(args.x + static_cast<std::int64_t>(x_row) * args.k);
  // Lane 1 carries the scale of row g + 8; what lanes 2 and 3 carry is not read.
  const std::uint8_t* weight_scale =
      args.weight_scale + static_cast<std::int64_t>(row + (t == 1 ? 8 : 0)) * groups;
  const std::uint8_t* x_scale = args.x_scale + static_cast<std::int64_t>(x_row) * groups;
  constexpr std::uint32_t kCode = 0x3c3c3c3cu;

  float sum[4] = {};
  for (int group = 0; group < groups; ++group) {
    const std::uint32_t w0 = top[4 * group + t];
    const std::uint32_t w1 = bottom[4 * group + t];
    const uint2 v = x[4 * group + t];
    const std::uint32_t a[4] = {(w0 << 2) & kCode, (w1 << 2) & kCode, (w0 >> 2) & kCode,
                                (w1 >> 2) & kCode};
    const std::uint32_t b[2] = {__byte_perm(v.x, v.y, 0x6420), __byte_perm(v.x, v.y, 0x7531)};
    mma_mxf8f6f4(sum, a, b, weight_scale[group], x_scale[group]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int out_token = 8 * blockIdx.y + 2 * t + i % 2;
    if (out_token < args.m) {
      args.y[static_cast<std::int64_t>(out_token) * args.n + row + 8 * (i / 2)] =
          encode_bf16(sum[i]);
    }
  }
}

}  // namespace

Claim mxfp_gemm_claim(int m, int n, int k) {
  const double x_bytes = 1.0 * m * (k + k / 32);
  const double weight_bytes = 1.0 * n * (k / 2 + k / 32);
  return {.bytes = x_bytes + weight_bytes + 2.0 * m * n, .flop = 2.0 * m * n * k};
}

cudaError_t launch_mxfp_gemm(const MxfpGemmArgs& args, cudaStream_t stream) {
  constexpr int kRows = 16 * kWarps;
  if (args.m < 1 || args.n < kRows || args.n % kRows != 0 || args.k < 32 || args.k % 32 != 0) {
    return cudaErrorInvalidValue;
  }
  const dim3 grid(static_cast<unsigned>(args.n / kRows), static_cast<unsigned>((args.m + 7) / 8));
  mxfp_gemm_kernel<<<grid, 32 * kWarps, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace fulcrum::kernels
