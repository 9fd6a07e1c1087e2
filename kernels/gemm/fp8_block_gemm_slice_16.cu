#include "kernels/gemm/fp8_block_gemm_slice.cuh"

namespace fulcrum::kernels {

cudaError_t launch_fp8_slice_16(const Fp8BlockGemmArgs& args, const SlicePlan& plan,
                                cudaStream_t stream) {
  return launch_slice<16, 32, 8, 4, 2>(args, plan, stream);
}

}  // namespace fulcrum::kernels
