// Programmatic dependent launch (sm_90 and later): the second of two kernels is set up while the
// first still runs and waits inside for its results, which hides most of a launch's latency. CUDA
// C++ Programming Guide, "Programmatic Dependent Launch and Synchronization". On older devices both
// sides are ordinary launches.
#pragma once

#include <cuda_runtime.h>

namespace fulcrum::kernels {
namespace device {

// First kernel: the dependent kernel's blocks may be scheduled from here on.
__device__ __forceinline__ void allow_dependent_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// Second kernel: everything the first one wrote is visible from here on.
__device__ __forceinline__ void wait_for_first_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

}  // namespace device

// Launches `kernel`, which calls wait_for_first_kernel(), behind the kernel launched just before on
// `stream`, which calls allow_dependent_launch().
template <typename... Parameters, typename... Arguments>
cudaError_t launch_dependent(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                             std::size_t shared_bytes, cudaStream_t stream,
                             Arguments&&... arguments) {
  int device = 0;
  int major = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  }
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = major >= 9 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

}  // namespace fulcrum::kernels
