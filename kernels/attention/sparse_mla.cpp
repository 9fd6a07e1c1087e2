#include "kernels/attention/sparse_mla.h"

#include <algorithm>

namespace fulcrum::kernels {

SparseMlaPlan plan_sparse_mla(const SparseMlaShape& shape, int num_sms, int shared_bytes_per_block,
                              int shared_bytes_per_sm) {
  // CUDA reserves 1 KiB of each resident block's shared memory (CUDA C++ Programming Guide, compute
  // capability 8.x and later).
  constexpr int kReservedBytes = 1024;
  constexpr int kMaxBlocksPerSm = 2;  // __launch_bounds__ of the kernel
  constexpr int kTileRows = 32;
  const int tiles = std::max(1, (shape.window_width + kTileRows - 1) / kTileRows +
                                    (shape.compressed_width + kTileRows - 1) / kTileRows);
  SparseMlaPlan plan;
  int blocks_per_sm = 1;
  for (const int heads : {16, 64}) {
    const int bytes = sparse_mla_split_k_shared_bytes(heads);
    if (shape.num_heads % heads != 0 || bytes > shared_bytes_per_block) continue;
    const bool enough_blocks = shape.num_tokens * (shape.num_heads / heads) * tiles >= num_sms;
    if (plan.heads_per_block != 0 && !enough_blocks) continue;
    plan.heads_per_block = heads;
    blocks_per_sm = std::min(heads == 64 ? 1 : kMaxBlocksPerSm,
                             std::max(1, shared_bytes_per_sm / (bytes + kReservedBytes)));
  }
  if (plan.heads_per_block == 0) return plan;
  const int blocks = std::max(1, shape.num_tokens * (shape.num_heads / plan.heads_per_block));
  const int slots = num_sms * blocks_per_sm;
  const int wanted = std::clamp(slots / blocks, 1, std::min(tiles, kSparseMlaMaxSplits));
  const int tiles_per_split = (tiles + wanted - 1) / wanted;
  plan.num_splits = (tiles + tiles_per_split - 1) / tiles_per_split;
  return plan;
}

SparseMlaPlan plan_sparse_mla_sm90(const SparseMlaShape& shape, int num_sms) {
  constexpr int kTileRows = 64;
  // Slots of window and compressed rows follow each other without a gap.
  const int tiles =
      std::max(1, (shape.window_width + shape.compressed_width + kTileRows - 1) / kTileRows);
  const int blocks_of_64 = shape.num_tokens * (shape.num_heads / 64);
  const bool wide = shape.num_heads % 64 == 0 && blocks_of_64 * tiles >= num_sms;
  SparseMlaPlan plan{.heads_per_block = wide ? 64 : 16, .num_splits = 1};
  const int blocks = std::max(1, shape.num_tokens * (shape.num_heads / plan.heads_per_block));
  const int slots = num_sms * (wide ? 1 : 2);
  // Clusters of more than two blocks do not find a place in every corner of a device: 64 clusters
  // of four took two waves on 264 slots of one H200, 32 clusters of five one.
  const int slots_for_clusters = slots * 3 / 4;
  double least_work = 0.0;
  for (int splits = 1; splits <= std::min(tiles, kSparseMlaSm90MaxSplits); ++splits) {
    const int tiles_per_split = (tiles + splits - 1) / splits;
    if ((splits - 1) * tiles_per_split >= tiles) continue;  // the last one would have no tile
    if (splits > 1 && blocks * splits > (splits > 2 ? slots_for_clusters : slots)) continue;
    // Blocks that share an SM share its throughput.
    const double work = tiles_per_split * std::max(1.0, 1.0 * blocks * splits / num_sms);
    if (splits == 1 || work < least_work) {
      least_work = work;
      plan.num_splits = splits;
    }
  }
  return plan;
}

std::int64_t sparse_mla_workspace_floats(const SparseMlaShape& shape, std::int32_t num_splits) {
  return std::int64_t{num_splits} * shape.num_tokens * shape.num_heads * (kKvHeadDim + 1);
}

Claim sparse_mla_claim(const SparseMlaShape& shape, double rows_per_token) {
  const double tokens = shape.num_tokens;
  const double heads = shape.num_heads;
  const double index_bytes = 4.0 * (rows_per_token + 2.0);
  const double query_and_output_bytes = 2.0 * 2.0 * kKvHeadDim * heads;
  return {.bytes = tokens * (rows_per_token * kKvRowBytes + index_bytes + query_and_output_bytes) +
                   4.0 * heads,
          .flop = tokens * heads * rows_per_token * 4.0 * kKvHeadDim};
}

Claim sparse_mla_row_loop_claim(const SparseMlaShape& shape, double rows_per_token) {
  Claim claim = sparse_mla_claim(shape, rows_per_token);
  const double tokens = shape.num_tokens;
  const double heads = shape.num_heads;
  claim.bytes += tokens * (heads - 1.0) * rows_per_token * (kKvRowBytes + 4.0);
  const double width = shape.window_width + shape.compressed_width;
  claim.flop = tokens * heads * width * 4.0 * kKvHeadDim;
  return claim;
}

}  // namespace fulcrum::kernels
