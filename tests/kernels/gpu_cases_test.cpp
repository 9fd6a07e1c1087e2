// Every kernel against its host reference on the shapes that its entry lists. Needs a GPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <iostream>

#include "kernels/common/check.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

std::optional<DeviceTraits> device_traits() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return std::nullopt;
  cudaDeviceProp properties{};
  FULCRUM_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return DeviceTraits{.compute_capability = 10 * properties.major + properties.minor,
                      .num_sms = properties.multiProcessorCount,
                      .l2_bytes = properties.l2CacheSize,
                      .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                      .shared_memory_per_block_bytes =
                          static_cast<std::int64_t>(properties.sharedMemPerBlockOptin)};
}

std::vector<std::string> kernels_with_outputs() {
  std::vector<std::string> names;
  for (const KernelEntry& entry : registry()) {
    if (entry.family != "selftest" && entry.family != "fault") names.push_back(entry.name);
  }
  return names;
}

class EveryKernel : public testing::TestWithParam<std::string> {};

TEST_P(EveryKernel, AgreesWithItsReferenceOnEveryElement) {
  const auto traits = device_traits();
  if (!traits) GTEST_SKIP() << "no GPU on this machine";
  const KernelEntry& entry = *find_kernel(GetParam());
  std::uint64_t seed = 20261130;
  for (const Shape& shape : parse_shapes(entry.verify_shapes, entry.dimensions)) {
    if (entry.unsupported(shape, *traits)) continue;
    Verification verdict;
    try {
      verdict = entry.make(shape, {.num_sets = 1, .seed = seed++})->verify(nullptr);
    } catch (const Unsupported& absence) {  // a library's choice, which only trying shows
      std::cout << "skipped " << shape.to_string() << ": " << absence.what() << '\n';
      continue;
    }
    EXPECT_TRUE(verdict.passed()) << shape.to_string() << ": " << verdict.num_failed << " of "
                                  << verdict.num_elements << " elements; " << verdict.worst;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryKernel, testing::ValuesIn(kernels_with_outputs()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace fulcrum::replay
