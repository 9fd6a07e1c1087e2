// The slice kernel with Hopper's warpgroup mma: FP8 operands straight from shared memory, where
// mma.sync would convert both to binary16 in registers on this architecture. A warpgroup multiplies
// one 128-column scale group at a time and adds it to binary32 sums, so the tensor core's short FP8
// sums (about 14 fractional bits, DeepSeek-V3 technical report, section 3.3.2) span 128 products at
// most.
#include "kernels/common/wgmma.cuh"
#include "kernels/gemm/fp8_block_gemm_slice.cuh"

namespace fulcrum::kernels {
namespace {

constexpr int kTokens = 64;
constexpr int kRows = 64;
constexpr int kGroupsPerChunk = 2;  // One per warpgroup.
constexpr int kTileBytes = 64 * 128;
constexpr int kSlotBytes = kGroupsPerChunk * 2 * kTileBytes;

// Only the shapes of block, partial tiles and receive area are used of it.
using S = SliceShape<kTokens, kRows, kGroupsPerChunk, 1>;
static_assert(S::kWarpsN == 4 && S::kRowTiles == 1 && S::kTokenTiles == 8);

constexpr int kSlots = 3;  // 96 KB: two blocks per multiprocessor.
constexpr int kWorkBytes = std::max(kSlots * kSlotBytes, S::kPartialBytes);

__global__ void __launch_bounds__(256, 2)
    fp8_wgmma_kernel(const Fp8BlockGemmArgs args, const int slice_groups, const int log2_splits) {
  extern __shared__ __align__(1024) std::uint8_t shared[];
  const SliceBlock<S> block(args, shared + kWorkBytes, slice_groups, log2_splits);
  const int warpgroup = threadIdx.x / 128;
  const int t = threadIdx.x % 4;
  const int num_chunks = (block.my_groups + kGroupsPerChunk - 1) / kGroupsPerChunk;

  // Slot: per group a weight tile, then a token tile, 128-byte rows in the 128-byte swizzle.
  // Sixteen lanes copy one row of both groups; a pass takes sixteen rows, so the swizzle of a
  // thread is the same in every pass.
  const int lane_chunk = threadIdx.x % 16;
  const int copy_row = threadIdx.x / 16;
  const int target =
      lane_chunk / 8 * 2 * kTileBytes + device::swizzled_offset(copy_row, lane_chunk % 8);
  const auto fetch = [&](int chunk) {
    if (chunk < num_chunks) {
      const int group = chunk * kGroupsPerChunk + lane_chunk / 8;
      const bool inside = group < block.my_groups;
      const std::int64_t column =
          128 * (block.first_group + (inside ? group : 0)) + 16 * (lane_chunk % 8);
      std::uint8_t* slot = shared + chunk % kSlots * kSlotBytes + target;
#pragma unroll
      for (int r = 0; r < 64; r += 16) {
        const int row = min(block.row0 + r + copy_row, args.n - 1);
        copy_async<16>(slot + r * 128,
                       args.weight + static_cast<std::int64_t>(row) * args.k + column, inside);
      }
#pragma unroll
      for (int r = 0; r < 64; r += 16) {
        const int token = block.token0 + r + copy_row;
        copy_async<16>(slot + kTileBytes + r * 128,
                       args.x + static_cast<std::int64_t>(min(token, args.m - 1)) * args.k + column,
                       inside && token < args.m);
      }
    }
    commit_copies();  // Empty groups keep the count of those in flight right.
  };
#pragma unroll
  for (int c = 0; c < kSlots - 1; ++c) fetch(c);
  slice_prologue(args, block);

  float sum[1][8][4] = {};
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    wait_copies<kSlots - 2>();
    device::fence_for_async_proxy();
    __syncthreads();  // The chunk is there, and everyone is done with the one before it.
    const std::uint8_t* tile = shared + chunk % kSlots * kSlotBytes + warpgroup * 2 * kTileBytes;
    const int group = chunk * kGroupsPerChunk + warpgroup;
    const bool mine = group < block.my_groups;
    float d[32];
    if (mine) {
      const std::uint64_t a = device::swizzled_descriptor(tile);
      const std::uint64_t b = device::swizzled_descriptor(tile + kTileBytes);
      device::warpgroup_arrive();
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        device::wgmma_64x64x32(d, a + k * device::kDescriptorStep32,
                               b + k * device::kDescriptorStep32, k > 0);
      }
      device::warpgroup_commit();
    }
    fetch(chunk + kSlots - 1);
    if (mine) {
      device::warpgroup_wait();
      const float* scales = block.scales + group * kTokens + 2 * t;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float2 scale = *reinterpret_cast<const float2*>(scales + 8 * j);
        sum[0][j][0] += d[4 * j] * scale.x;
        sum[0][j][1] += d[4 * j + 1] * scale.y;
        sum[0][j][2] += d[4 * j + 2] * scale.x;
        sum[0][j][3] += d[4 * j + 3] * scale.y;
      }
    }
  }
  wait_copies<0>();
  slice_epilogue(args, block, shared, threadIdx.x / 32 % 4, warpgroup, sum, 1.0f);
}

}  // namespace

cudaError_t launch_fp8_slice_wgmma(const Fp8BlockGemmArgs& args, const SlicePlan& plan,
                                   cudaStream_t stream) {
  const int slice_groups = (args.k / 128 + plan.splits - 1) / plan.splits;
  const int shared_bytes =
      kWorkBytes + 4 * kTokens * slice_groups + (plan.splits > 1 ? S::kReceiveBytes + 16 : 0);
  if (shared_bytes > plan.max_shared_bytes) return cudaErrorInvalidValue;
  return launch_slice_kernel(fp8_wgmma_kernel, args, plan, slice_groups, shared_bytes, kRows,
                             kTokens, stream);
}

}  // namespace fulcrum::kernels
