#include "kernels/gemm/fp8_block_gemm_slice.cuh"

namespace fulcrum::kernels {

cudaError_t launch_fp8_slice_64(const Fp8BlockGemmArgs& args, const SlicePlan& plan,
                                cudaStream_t stream) {
  return launch_slice<64, 64, 4, 2, 1>(args, plan, stream);
}

}  // namespace fulcrum::kernels
