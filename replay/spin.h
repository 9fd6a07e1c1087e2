// Kernels that the instrument is tested on: one of known duration, one that does nothing, and
// faults.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fulcrum::replay {

// One thread that runs until %globaltimer has advanced by `nanoseconds`.
[[nodiscard]] cudaError_t launch_spin(std::int64_t nanoseconds, cudaStream_t stream);
[[nodiscard]] cudaError_t launch_empty(cudaStream_t stream);
// Writes through an address that no allocation covers.
[[nodiscard]] cudaError_t launch_illegal_write(cudaStream_t stream);
// Waits for a flag that nobody sets; `flag` is device memory holding 0.
[[nodiscard]] cudaError_t launch_hang(const std::int32_t* flag, cudaStream_t stream);

}  // namespace fulcrum::replay
