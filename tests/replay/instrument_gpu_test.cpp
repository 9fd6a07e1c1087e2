// The instrument measured: known durations come back, the launch floor is one, faults stay in their
// process.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/common/check.h"
#include "replay/registry.h"
#include "replay/spin.h"
#include "replay/timing.h"
#include "replay/worker.h"

namespace fulcrum::replay {
namespace {

class Instrument : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU here";
  }
};

Timing time_spin(std::int64_t nanoseconds, LaunchMode mode) {
  const Nvml nvml(pci_bus_id());
  return measure(
      {.cache = CacheState::kWarm, .launch = mode, .stopping = {}}, 1,
      [=](int, cudaStream_t stream) { FULCRUM_CUDA_CHECK(launch_spin(nanoseconds, stream)); },
      nvml);
}

Timing time_empty(LaunchMode mode) {
  const Nvml nvml(pci_bus_id());
  return measure(
      {.cache = CacheState::kWarm, .launch = mode, .stopping = {}}, 1,
      [](int, cudaStream_t stream) { FULCRUM_CUDA_CHECK(launch_empty(stream)); }, nvml);
}

// A spin runs at least its time; the difference of two spins cancels launch and polling.
TEST_F(Instrument, KnownDurationsAreRecoveredWithinOnePercent) {
  for (const LaunchMode mode : {LaunchMode::kSingle, LaunchMode::kGraph}) {
    const double short_seconds = time_spin(200'000, mode).summary.median_seconds;
    const double long_seconds = time_spin(1'000'000, mode).summary.median_seconds;
    EXPECT_NEAR(long_seconds - short_seconds, 8e-4, 8e-6) << to_string(mode);
    EXPECT_NEAR(long_seconds, 1e-3, 1e-5) << to_string(mode);
  }
}

TEST_F(Instrument, TheLaunchFloorIsMicrosecondsAndSmallerInAGraph) {
  const double single = time_empty(LaunchMode::kSingle).summary.median_seconds;
  const double graph = time_empty(LaunchMode::kGraph).summary.median_seconds;
  EXPECT_GT(graph, 1e-7);
  EXPECT_LT(graph, single);
  EXPECT_LT(single, 2e-5);
}

TEST_F(Instrument, ColdSetsExceedTwiceTheCache) {
  EXPECT_EQ(sets_for_cold(0, 60e6), 1);
  EXPECT_EQ(sets_for_cold(4e6, 60e6), 31);  // 30 * 4 MB = 120 MB between two uses.
  EXPECT_EQ(sets_for_cold(200e6, 60e6), 2);
}

TEST_F(Instrument, AnOutOfMemoryEntryFailsAndTheNextOneRuns) {
  const Session session = describe_device();
  const Nvml nvml(pci_bus_id());
  bool context_lost = false;
  const KernelEntry* huge = find_kernel("fault_out_of_memory");
  const EntryResult failed =
      run_item({.kernel = huge, .shape = {}}, {}, session, nvml, context_lost);
  EXPECT_EQ(failed.status, EntryStatus::kFailed);
  EXPECT_NE(failed.reason.find("cudaErrorMemoryAllocation"), std::string::npos);
  EXPECT_FALSE(context_lost);
  const EntryResult next =
      run_item({.kernel = find_kernel("empty"), .shape = {}}, {}, session, nvml, context_lost);
  EXPECT_EQ(next.status, EntryStatus::kOk) << next.reason;
}

}  // namespace
}  // namespace fulcrum::replay
