#include "model/laws/collective_path.h"

#include <gtest/gtest.h>

#include <array>

#include "model/law_table.h"

namespace fulcrum {
namespace {

const LawDevice kDevice = [] {
  LawDevice device;
  device.l2_bytes = 60e6;
  device.link_bandwidth_bytes_per_second = 400e9;
  return device;
}();
const CollectivePathLaw<double> kLaw{5e-6, 1e-6, 2e-6, 8192.0, 0.5, 0.4};

double seconds(CollectivePath path, double bytes, double ranks,
               CollectiveKind kind = CollectiveKind::kAllReduce) {
  return collective_path_seconds(kLaw, path, {.kind = kind, .bytes = bytes, .ranks = ranks},
                                 kDevice);
}

// 4 ranks, 1 MB: 5 us + steps + 2 us x 1e6 / 1008192, and what crosses at 200 GB/s.
TEST(CollectivePath, EachPathCountsItsStepsAndItsTraffic) {
  const double common = 5e-6 + 2e-6 * 1e6 / (1e6 + 8192.0);
  const double message = 1e6 / 200e9;
  EXPECT_NEAR(seconds(CollectivePath::kRing, 1e6, 4), common + 6e-6 + 1.5 * message, 1e-12);
  EXPECT_NEAR(seconds(CollectivePath::kTree, 1e6, 4), common + 4e-6 + 1.5 * message, 1e-12);
  EXPECT_NEAR(seconds(CollectivePath::kOneShot, 1e6, 4), common + 1e-6 + 3.0 * message, 1e-12);
  EXPECT_NEAR(seconds(CollectivePath::kTwoShot, 1e6, 4), common + 2e-6 + 1.5 * message, 1e-12);
  EXPECT_NEAR(seconds(CollectivePath::kRing, 1e6, 4, CollectiveKind::kAllGather),
              common + 3e-6 + 0.75 * message, 1e-12);
}

TEST(CollectivePath, OneRankSendsNothing) {
  EXPECT_EQ(seconds(CollectivePath::kRing, 1e6, 1), 0.0);
}

// 60 MB of L2 hold four copies of 15 MB.
TEST(CollectivePath, TheRateChangesWhereFourCopiesNoLongerFitTheCache) {
  const double before = seconds(CollectivePath::kRing, 15.0e6, 2);
  const double after = seconds(CollectivePath::kRing, 15.0e6 + 16.0, 2);
  EXPECT_NEAR(after - before, 15.0e6 / 400e9 * (1.0 / 0.4 - 1.0 / 0.5), 1e-9);
}

TEST(CollectivePath, GrowsWithBytesAndRanksAndNeverBeatsTheLink) {
  for (const CollectivePath path : {CollectivePath::kRing, CollectivePath::kTree,
                                    CollectivePath::kOneShot, CollectivePath::kTwoShot}) {
    double last = 0.0;
    for (double bytes = 256.0; bytes < 1e8; bytes *= 2.0) {
      const double t = seconds(path, bytes, 4);
      EXPECT_GT(t, last);
      EXPECT_GE(t, collective_path_traffic(path, CollectiveKind::kAllReduce, 4).fraction * bytes /
                       kDevice.link_bandwidth_bytes_per_second);
      EXPECT_LE(t, seconds(path, bytes, 8));
      last = t;
    }
  }
}

TEST(CollectivePath, CanBeBoundByAKernelSet) {
  const std::array<double, 6> parameters = {5e-6, 1e-6, 2e-6, 8192.0, 0.5, 0.4};
  const LawInfo* info = find_law("collective_one_shot");
  ASSERT_NE(info, nullptr);
  const CollectiveLaunch launch{.bytes = 8192.0, .ranks = 2.0};
  EXPECT_DOUBLE_EQ(law_seconds(info->make(parameters), launch, kDevice),
                   seconds(CollectivePath::kOneShot, 8192.0, 2));
}

}  // namespace
}  // namespace fulcrum
