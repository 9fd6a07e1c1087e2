#include <algorithm>

#include "kernels/common/check.h"
#include "kernels/common/formats.h"
#include "replay/random_fill.h"

namespace fulcrum::replay {
namespace {

// Finalizer of SplitMix64 (Steele, Lea, Flood 2014) over a Weyl sequence.
__device__ std::uint64_t random_bits(std::uint64_t seed, std::int64_t index) {
  std::uint64_t z = seed * 0xd1342543de82ef95ull + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

__device__ float uniform(std::uint64_t bits, float low, float high) {
  return low + (high - low) * (static_cast<float>(bits >> 40) * 0x1p-24f);
}

template <typename T, typename Make>
__global__ void fill_kernel(T* data, std::int64_t count, std::uint64_t seed, Make make) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    data[i] = make(random_bits(seed, i));
  }
}

template <typename T, typename Make>
void fill(T* data, std::int64_t count, std::uint64_t seed, cudaStream_t stream, Make make) {
  if (count <= 0) return;
  const auto num_blocks = static_cast<unsigned>(std::min<std::int64_t>((count + 255) / 256, 4096));
  fill_kernel<<<num_blocks, 256, 0, stream>>>(data, count, seed, make);
  FULCRUM_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void fill_bytes(void* data, std::int64_t num_bytes, std::uint64_t seed, cudaStream_t stream) {
  const std::int64_t words = num_bytes / 8;
  fill(static_cast<std::uint64_t*>(data), words, seed, stream,
       [] __device__(std::uint64_t bits) { return bits; });
  fill(static_cast<std::uint8_t*>(data) + 8 * words, num_bytes - 8 * words, seed + 1, stream,
       [] __device__(std::uint64_t bits) { return static_cast<std::uint8_t>(bits); });
}

void fill_e4m3(std::uint8_t* data, std::int64_t count, std::uint64_t seed, cudaStream_t stream,
               std::uint8_t max_code) {
  fill(data, count, seed, stream, [max_code] __device__(std::uint64_t bits) {
    const auto magnitude = static_cast<std::uint32_t>((bits >> 32) % (max_code + 1u));
    return static_cast<std::uint8_t>(magnitude | ((bits & 1u) << 7));
  });
}

void fill_e8m0(std::uint8_t* data, std::int64_t count, std::uint8_t low, std::uint8_t high,
               std::uint64_t seed, cudaStream_t stream) {
  const std::uint32_t span = high - low + 1u;
  fill(data, count, seed, stream, [low, span] __device__(std::uint64_t bits) {
    return static_cast<std::uint8_t>(low + (bits >> 32) % span);
  });
}

void fill_float(float* data, std::int64_t count, float low, float high, std::uint64_t seed,
                cudaStream_t stream) {
  fill(data, count, seed, stream,
       [low, high] __device__(std::uint64_t bits) { return uniform(bits, low, high); });
}

void fill_bf16(std::uint16_t* data, std::int64_t count, float low, float high, std::uint64_t seed,
               cudaStream_t stream) {
  fill(data, count, seed, stream, [low, high] __device__(std::uint64_t bits) {
    return kernels::encode_bf16(uniform(bits, low, high));
  });
}

void fill_int(std::int32_t* data, std::int64_t count, std::int32_t low, std::int32_t high,
              std::uint64_t seed, cudaStream_t stream) {
  const auto span = static_cast<std::uint64_t>(static_cast<std::int64_t>(high) - low + 1);
  fill(data, count, seed, stream, [low, span] __device__(std::uint64_t bits) {
    return static_cast<std::int32_t>(low + static_cast<std::int64_t>((bits >> 32) % span));
  });
}

}  // namespace fulcrum::replay
