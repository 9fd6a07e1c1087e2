// Launches shared by the grouped and the per-slot path, and the workspace they agree on.
#pragma once

#include "kernels/moe/moe.h"

namespace fulcrum::kernels {

// An expert that has slots: they are sorted_slot[begin .. end).
struct alignas(16) MoeRun {
  std::int32_t expert = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

struct MoeWorkspace {
  MoeRun* runs = nullptr;                // [experts]: the first num_runs are set, by expert.
  std::int32_t* num_runs = nullptr;      // [1].
  std::int32_t* sorted_slot = nullptr;   // [tokens * top_k].
  std::int32_t* sorted_token = nullptr;  // [tokens * top_k]: sorted_slot / top_k.
  std::uint16_t* permuted_x = nullptr;   // [tokens, hidden], see moe_layout.cuh.
  std::uint16_t* activation = nullptr;   // [tokens * top_k, width] BF16.
  float* slot_out = nullptr;             // [tokens * top_k, hidden].
};
MoeWorkspace moe_workspace(const MoeShape& shape, void* memory);

bool moe_shape_ok(const MoeShape& shape);

// Sorts slots by expert and permutes x.
cudaError_t launch_moe_prepare(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream);
// out[t] = sum over k of expert_weights[t, k] * slot_out[t * top_k + k], in that order.
cudaError_t launch_moe_combine(const MoeArgs& args, const MoeWorkspace& w, cudaStream_t stream);
// w13 + SwiGLU, w2 over sorted slots.
cudaError_t launch_moe_grouped_mxfp4(const MoeArgs& args, const MoeWorkspace& w,
                                     cudaStream_t stream);
cudaError_t launch_moe_grouped_nvfp4(const MoeArgs& args, const MoeWorkspace& w,
                                     cudaStream_t stream);

}  // namespace fulcrum::kernels
