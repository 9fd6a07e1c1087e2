// What the registry_<family>.cpp files have in common.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/device_buffer.h"
#include "replay/case.h"
#include "replay/random_fill.h"

namespace fulcrum::replay {

inline std::optional<std::string> any_device(const Shape&, const DeviceTraits&) {
  return std::nullopt;
}

template <typename CaseType>
std::unique_ptr<Case> make_case(const Shape& shape, const CaseOptions& options) {
  return std::make_unique<CaseType>(shape, options);
}

inline Dimension dimension(std::string name, std::string meaning, std::int64_t default_value,
                           std::int64_t min, std::int64_t max, std::int64_t multiple = 1) {
  return {.name = std::move(name),
          .meaning = std::move(meaning),
          .default_value = default_value,
          .min = min,
          .max = max,
          .multiple = multiple};
}

inline Dimension token_dimension(std::int64_t max = 4096) {
  return dimension("m", "tokens: requests x (1 + drafts)", 1, 1, max);
}

// Product of the factors as a buffer size.
inline std::size_t product(std::initializer_list<std::int64_t> factors) {
  std::size_t size = 1;
  for (const std::int64_t factor : factors) size *= static_cast<std::size_t>(factor);
  return size;
}

template <typename T>
std::int64_t length(const kernels::DeviceBuffer<T>& buffer) {
  return static_cast<std::int64_t>(buffer.size());
}

// Buffers of uniform random values.
inline kernels::DeviceBuffer<std::uint16_t> random_bf16(std::size_t size, std::uint64_t seed,
                                                        float low = -1.0F, float high = 1.0F) {
  kernels::DeviceBuffer<std::uint16_t> buffer(size);
  fill_bf16(buffer.data(), length(buffer), low, high, seed, nullptr);
  return buffer;
}
inline kernels::DeviceBuffer<float> random_floats(std::size_t size, std::uint64_t seed,
                                                  float low = -1.0F, float high = 1.0F) {
  kernels::DeviceBuffer<float> buffer(size);
  fill_float(buffer.data(), length(buffer), low, high, seed, nullptr);
  return buffer;
}

// "m=1;m=2;..." with `rest` appended to each.
inline std::string token_shapes(std::initializer_list<int> tokens, const std::string& rest = "") {
  std::string shapes;
  for (const int m : tokens) shapes += (shapes.empty() ? "m=" : ";m=") + std::to_string(m) + rest;
  return shapes;
}

// Prefix of `buffer` on the host: the set that verify() looks at.
template <typename T>
std::vector<T> download_prefix(const kernels::DeviceBuffer<T>& buffer, std::size_t size) {
  std::vector<T> host(size);
  FULCRUM_CUDA_CHECK(
      cudaMemcpy(host.data(), buffer.data(), size * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

}  // namespace fulcrum::replay
