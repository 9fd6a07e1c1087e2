#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/common/check.h"
#include "kernels/common/formats.h"
#include "replay/random_rows.h"

namespace fulcrum::replay {
namespace {

using kernels::IndexPool;
using kernels::KvPool;

constexpr int kThreads = 128;

// Finalizer of SplitMix64 (Steele, Lea, Flood 2014).
__device__ std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

__device__ std::uint64_t random_bits(std::uint64_t seed, std::int64_t row, int item) {
  return mix(mix(seed + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(row + 1)) +
             0xd1342543de82ef95ULL * static_cast<std::uint64_t>(item + 1));
}

__device__ std::uint8_t finite_e4m3(std::uint64_t bits) {
  return static_cast<std::uint8_t>(((bits >> 32) % 0x7fU) | ((bits & 1U) << 7));
}

__device__ float unit(std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24F; }

__global__ void kv_rows_kernel(KvPool pool, std::uint64_t seed) {
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  std::uint8_t* data = pool.pages + kernels::kv_data_offset(pool, row);
  std::uint8_t* scales = pool.pages + kernels::kv_scale_offset(pool, row);
  for (int i = static_cast<int>(threadIdx.x);
       i < kernels::kKvHeadDim + kernels::kKvScaleRecordBytes; i += kThreads) {
    const std::uint64_t bits = random_bits(seed, row, i);
    if (i < kernels::kKvFp8Values) {
      data[i] = finite_e4m3(bits);
    } else if (i < kernels::kKvHeadDim) {
      reinterpret_cast<std::uint16_t*>(data + kernels::kKvFp8Values)[i - kernels::kKvFp8Values] =
          kernels::encode_bf16(8.0F * unit(bits) - 4.0F);
    } else {
      constexpr std::uint32_t kLowest = 127 - 10;
      scales[i - kernels::kKvHeadDim] = static_cast<std::uint8_t>(kLowest + (bits >> 32) % 5U);
    }
  }
}

__global__ void index_rows_kernel(IndexPool pool, std::uint64_t seed) {
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  const int i = static_cast<int>(threadIdx.x);
  pool.pages[kernels::index_code_offset(pool, row) + i] = finite_e4m3(random_bits(seed, row, i));
  if (i == 0) {
    *reinterpret_cast<float*>(pool.pages + kernels::index_scale_offset(pool, row)) =
        0x1p-9F * (1.0F + 3.0F * unit(random_bits(seed, row, kThreads)));
  }
}

}  // namespace

void fill_kv_rows(const KvPool& pool, std::int64_t num_rows, std::uint64_t seed,
                  cudaStream_t stream) {
  kv_rows_kernel<<<static_cast<unsigned>(num_rows), kThreads, 0, stream>>>(pool, seed);
  FULCRUM_CUDA_CHECK(cudaGetLastError());
}

void fill_index_rows(const IndexPool& pool, std::int64_t num_rows, std::uint64_t seed,
                     cudaStream_t stream) {
  static_assert(kThreads == kernels::kIndexDim);
  index_rows_kernel<<<static_cast<unsigned>(num_rows), kThreads, 0, stream>>>(pool, seed);
  FULCRUM_CUDA_CHECK(cudaGetLastError());
}

std::vector<float> rotary_table(int num_positions, double theta) {
  constexpr int kPairs = kernels::kKvRopeValues / 2;
  std::vector<float> table(static_cast<std::size_t>(num_positions) * 2 * kPairs);
  for (int position = 0; position < num_positions; ++position) {
    for (int pair = 0; pair < kPairs; ++pair) {
      const double angle = position * std::pow(theta, -static_cast<double>(pair) / kPairs);
      const std::size_t at =
          (static_cast<std::size_t>(position) * kPairs + static_cast<std::size_t>(pair)) * 2;
      table[at] = static_cast<float>(std::cos(angle));
      table[at + 1] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

std::vector<std::int32_t> distinct_values(int count, int range, std::uint64_t seed) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(range));
  std::iota(values.begin(), values.end(), 0);
  std::mt19937_64 random(seed);
  for (int i = 0; i < count; ++i) {
    const auto span = static_cast<std::uint64_t>(range - i);
    std::swap(values[static_cast<std::size_t>(i)],
              values[static_cast<std::size_t>(i) + static_cast<std::size_t>(random() % span)]);
  }
  values.resize(static_cast<std::size_t>(count));
  return values;
}

}  // namespace fulcrum::replay
