// How activations lie so that FP4 weights meet them without shuffles.
//
// A step covers 128 columns; lane t of a quad owns columns 32t..32t+31 of it: one 16-byte load of a
// weight row, and exactly one MXFP4 scale group (two of NVFP4). Word i of that load holds columns
// 32t + 8i + (0..7), decoded into the pairs (0,4) (1,5) (2,6) (3,7). Activations are stored in that
// order, and the four lanes' pieces for one i lie side by side: position 32i + 8t + j of a block of
// 128 holds column 32t + 8i + kPairOrder[j].
#pragma once

#include <cstdint>

namespace fulcrum::kernels {

// Column -> position, within a block of 128.
__device__ __forceinline__ int moe_position(int column) {
  const int t = column / 32;
  const int i = column / 8 % 4;
  const int c = column % 8;
  return 32 * i + 8 * t + (c < 4 ? 2 * c : 2 * (c - 4) + 1);
}

}  // namespace fulcrum::kernels
