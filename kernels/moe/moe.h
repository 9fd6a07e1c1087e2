// Routed experts of one layer on one rank: w13, SwiGLU with clamp, w2, weighted sum over the
// token's experts. FP4 weights, BF16 activations, binary32 accumulation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/claim.h"
#include "kernels/moe/moe_reference.h"

namespace fulcrum::kernels {

using MoeWeights =
    MoeWeightsOf<const std::uint8_t*, const float*>;  // Device pointers, 16-byte aligned.

struct MoeArgs {
  MoeShape shape;
  MoeWeights weights;
  const std::uint16_t* x = nullptr;          // [tokens, hidden] BF16.
  const std::int32_t* expert_ids = nullptr;  // [tokens, top_k] in [0, experts).
  const float* expert_weights = nullptr;     // [tokens, top_k].
  float swiglu_limit = 10;
  std::uint16_t* out = nullptr;  // [tokens, hidden] BF16.
  void* workspace = nullptr;     // moe_workspace_bytes(shape), 256-byte aligned.
};

// Brings FP4 codes into the order of moe_packed.h, in place. `codes` 16-byte aligned; num_bytes a
// multiple of 16, else cudaErrorInvalidValue.
[[nodiscard]] cudaError_t launch_moe_pack(std::uint8_t* codes, std::int64_t num_bytes,
                                          cudaStream_t stream);

std::size_t moe_workspace_bytes(const MoeShape& shape);

// Bytes of one expert's weights and scales on this rank.
double moe_expert_bytes(const MoeShape& shape, Fp4Format format);

// `distinct_experts`: experts that the routing of this launch really uses. Grouped reads each of
// them once; per-slot reads one expert per (token, k) whatever others read.
Claim moe_grouped_claim(const MoeShape& shape, Fp4Format format, double distinct_experts);
Claim moe_per_slot_claim(const MoeShape& shape, Fp4Format format);

// Both return cudaErrorInvalidValue for a shape outside the bounds of MoeShape.
//
// Grouped: slots sorted by expert, tensor cores, each used expert's weights read once. gate_up and
// down must have gone through launch_moe_pack, as engines repack theirs at load. E8M0 scale
// codes must lie in [66, 192] (weights between 2^-61 and 6 * 2^65; outside, products leave BF16's
// range).
[[nodiscard]] cudaError_t launch_moe_grouped(const MoeArgs& args, cudaStream_t stream);

// One block per (token, expert) slot and rows block, CUDA cores, no reuse between tokens: what
// SGLang's SM120 fallback of June 2026 does (_mxfp4_slot_gemv_kernel).
[[nodiscard]] cudaError_t launch_moe_per_slot(const MoeArgs& args, cudaStream_t stream);

}  // namespace fulcrum::kernels
