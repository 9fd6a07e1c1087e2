#include "kernels/moe/moe_grouped.cuh"

namespace fulcrum::kernels {

cudaError_t launch_moe_grouped_mxfp4(const MoeArgs& args, const MoeWorkspace& w,
                                     cudaStream_t stream) {
  return launch_grouped_both<Fp4Format::kMxfp4>(args, w, stream);
}

}  // namespace fulcrum::kernels
