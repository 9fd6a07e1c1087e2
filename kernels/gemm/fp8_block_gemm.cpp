#include "kernels/gemm/fp8_block_gemm.h"

#include "kernels/gemm/fp8_block_gemm_slice.h"
#include "kernels/gemm/fp8_block_gemm_tile.h"

namespace fulcrum::kernels {
namespace {

struct DeviceFacts {
  int major = 0;
  int num_sms = 0;
  int max_shared_bytes = 0;
};

cudaError_t query(DeviceFacts& facts) {
  int device = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess) {
    code = cudaDeviceGetAttribute(&facts.major, cudaDevAttrComputeCapabilityMajor, device);
  }
  if (code == cudaSuccess) {
    code = cudaDeviceGetAttribute(&facts.num_sms, cudaDevAttrMultiProcessorCount, device);
  }
  if (code == cudaSuccess) {
    code = cudaDeviceGetAttribute(&facts.max_shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                  device);
  }
  return code;
}

// Two blocks per tile while the grid stays within one block per multiprocessor and each slice keeps
// a chunk; four while it stays within three quarters: larger clusters are harder to place, and
// eight never won on the H200.
int choose_splits(int blocks, int num_groups, int groups_per_chunk, const DeviceFacts& facts) {
  if (4 * 4 * blocks <= 3 * facts.num_sms && num_groups >= 4 * groups_per_chunk) return 4;
  if (2 * blocks <= facts.num_sms && num_groups >= 2 * groups_per_chunk) return 2;
  return 1;
}

bool uses_wgmma(int m, int major) { return major == 9 && m > 16; }

}  // namespace

Claim fp8_block_gemm_claim(int m, int n, int k, BlockScaleFormat weight_scale_format) {
  const double scale_bytes = weight_scale_format == BlockScaleFormat::kFloat ? 4 : 1;
  const int groups = k / 128;
  const double weight_bytes = 1.0 * n * k + scale_bytes * ((n + 127) / 128) * groups;
  const double x_bytes = 1.0 * m * (k + 4 * groups);
  return {.bytes = weight_bytes + x_bytes + 2.0 * m * n, .flop = 2.0 * m * n * k};
}

double fp8_block_gemm_sum_error(int m, int compute_capability) {
  return uses_wgmma(m, compute_capability / 10) ? 0x1p-11 : 0x1p-18;
}

cudaError_t launch_fp8_block_gemm(const Fp8BlockGemmArgs& args, cudaStream_t stream) {
  if (args.m < 1 || args.n < 16 || args.n % 16 != 0 || args.k < 128 || args.k % 128 != 0) {
    return cudaErrorInvalidValue;
  }
  DeviceFacts facts;
  if (const cudaError_t code = query(facts); code != cudaSuccess) return code;
  const bool wgmma = uses_wgmma(args.m, facts.major);
  // The tile path wants enough 128 x 128 tiles to occupy half of the device.
  const int tiles = ((args.m + 127) / 128) * ((args.n + 127) / 128);
  if (args.m > 64 && !wgmma && args.split_k == 0 && 2 * tiles >= facts.num_sms) {
    return launch_fp8_block_gemm_tile(args, stream);
  }

  const int rows = args.m <= 8 ? 16 : args.m <= 16 ? 32 : 64;  // Of the instantiations below.
  const int groups_per_chunk = args.m <= 16 ? 4 : args.m <= 32 && !wgmma ? 1 : 2;
  const int blocks = (args.n + rows - 1) / rows * ((args.m + 63) / 64);
  SlicePlan plan{.splits = args.split_k, .max_shared_bytes = facts.max_shared_bytes};
  if (plan.splits == 0) plan.splits = choose_splits(blocks, args.k / 128, groups_per_chunk, facts);
  if (facts.major < 9) plan.splits = 1;
  if (plan.splits != 1 && plan.splits != 2 && plan.splits != 4 && plan.splits != 8) {
    return cudaErrorInvalidValue;
  }
  if (args.m <= 8) return launch_fp8_slice_8(args, plan, stream);
  if (args.m <= 16) return launch_fp8_slice_16(args, plan, stream);
  if (wgmma) return launch_fp8_slice_wgmma(args, plan, stream);
  if (args.m <= 32) return launch_fp8_slice_32(args, plan, stream);
  return launch_fp8_slice_64(args, plan, stream);
}

}  // namespace fulcrum::kernels
