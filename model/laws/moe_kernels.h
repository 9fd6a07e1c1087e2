// What the known MoE kernels do to shapes, from their sources. Used where tables are fitted and
// where steps are priced, so that parameters mean the same in both.
#pragma once

#include "model/laws/moe.h"

namespace fulcrum {

/// SGLang's fused Triton kernel, BF16 weights: default configurations of
/// fused_moe_triton_config.py, 16x32x64 up to as many tokens as local experts, then 64x64x32.
/// sgl_kernel aligns fewer than 1024 pairs of at most 64 experts in one block.
constexpr MoeKernelTraits triton_bf16_moe() {
  MoeKernelTraits traits;
  traits.tile = {0, 32.0, 64.0};
  traits.many_tile = {2, 64.0, 32.0};
  traits.switches_tile = true;
  traits.padded_grid = true;
  traits.small_align_pairs = 1024.0;
  return traits;
}

/// The same kernel with 128x128-scaled FP8 weights: 64x128x128. Where 128 does not divide the
/// expert width, block scales cannot be used and the per-tensor defaults apply: 64x128x128, then
/// 128x256x128.
constexpr MoeKernelTraits triton_fp8_block_moe(bool width_is_divisible) {
  MoeKernelTraits traits;
  traits.tile = {2, 128.0, 128.0};
  traits.many_tile = {3, 256.0, 128.0};
  traits.switches_tile = !width_is_divisible;
  traits.padded_grid = true;
  traits.small_align_pairs = 1024.0;
  return traits;
}

/// Autotuned CUTLASS grouped GEMMs and Marlin: 64 x 128 tiles of 128 bytes of k stand for the menu.
constexpr MoeKernelTraits grouped_moe(bool bf16) {
  MoeKernelTraits traits;
  traits.tile = {2, 128.0, bf16 ? 64.0 : 128.0};
  traits.many_tile = traits.tile;
  traits.rows_cost = true;
  return traits;
}

}  // namespace fulcrum
