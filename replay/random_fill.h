// Random device inputs, generated where they are used: a layer's expert weights are gigabytes.
// Values are a pure function of (seed, index).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fulcrum::replay {

// Each fills `count` elements at device pointer `data` and throws kernels::CudaError on failure.
void fill_bytes(void* data, std::int64_t num_bytes, std::uint64_t seed, cudaStream_t stream);
// Any finite E4M3 code whose magnitude is at most 448 (so no NaN), uniform over codes below
// `max_code`.
void fill_e4m3(std::uint8_t* data, std::int64_t count, std::uint64_t seed, cudaStream_t stream,
               std::uint8_t max_code = 0x7e);
// E8M0 exponents, uniform in [low, high].
void fill_e8m0(std::uint8_t* data, std::int64_t count, std::uint8_t low, std::uint8_t high,
               std::uint64_t seed, cudaStream_t stream);
// Uniform in [low, high).
void fill_float(float* data, std::int64_t count, float low, float high, std::uint64_t seed,
                cudaStream_t stream);
void fill_bf16(std::uint16_t* data, std::int64_t count, float low, float high, std::uint64_t seed,
               cudaStream_t stream);
// Uniform integers in [low, high].
void fill_int(std::int32_t* data, std::int64_t count, std::int32_t low, std::int32_t high,
              std::uint64_t seed, cudaStream_t stream);

}  // namespace fulcrum::replay
