#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/laws/collective.h"

namespace fulcrum {
namespace {

LawDevice device_with_link(double bytes_per_second) {
  LawDevice d;
  d.link_bandwidth_bytes_per_second = bytes_per_second;
  return d;
}

/// PCIe one-shot kernel of local-inference-lab/rtx6kpro (optimization/pcie-oneshot-allreduce.md,
/// hardware/pcie-bandwidth.md), fitted to 16 rows of 4 and 8 GPUs: rms 3.2 %. Relative standard
/// errors: base 4 %, hop 14 %, efficiency 2 %, share at eight 3 %.
CollectiveLaw<double> pcie_one_shot() {
  CollectiveLaw<double> law;
  law.one_shot = {5.13e-6, 0.314e-6, 0.5505};
  law.one_shot_share_8 = 0.760;
  law.ll = law.ll128 = law.simple = {1.0, 0.0, 1.0};  // never chosen
  law.fast_share_4 = law.fast_share_8 = law.simple_share_4 = law.simple_share_8 = 1.0;
  return law;
}

TEST(CollectiveLaw, OneShotOnPcieReproducesPublishedTimes) {
  const LawDevice pcie = device_with_link(63e9);
  const CollectiveStructure structure{.one_shot_max_ranks = 8.0};
  const struct {
    double ranks, kibibytes, microseconds;
  } rows[] = {{4, 1, 6.1}, {4, 32, 9.2},  {4, 128, 17.6}, {4, 1024, 95.6},
              {8, 1, 7.5}, {8, 32, 16.5}, {8, 64, 25.9},  {8, 256, 73.6}};
  for (const auto& row : rows) {
    const CollectiveLaunch launch{.bytes = row.kibibytes * 1024.0, .ranks = row.ranks};
    const double t = collective_seconds(pcie_one_shot(), structure, launch, pcie);
    EXPECT_NEAR(t * 1e6 / row.microseconds, 1.0, 0.06) << row.ranks << " x " << row.kibibytes;
  }
}

TEST(CollectiveLaw, ARingAllReduceIsItsStepsAndItsTraffic) {
  // 4 ranks: 6 steps of 1 us on 5 us; 1.5 x 1 MB over 0.5 x 0.8 x 100 GB/s = 37.5 us.
  CollectiveLaw<double> law = pcie_one_shot();
  law.simple = {5e-6, 1e-6, 0.5};
  law.simple_share_4 = 0.8;
  const CollectiveLaunch launch{.bytes = 1e6, .ranks = 4.0};
  EXPECT_NEAR(collective_seconds(law, {}, launch, device_with_link(100e9)), 5e-6 + 6e-6 + 37.5e-6,
              1e-12);
}

TEST(CollectiveLaw, OneRankSendsNothing) {
  EXPECT_EQ(collective_seconds(pcie_one_shot(), {.one_shot_max_ranks = 8.0},
                               {.bytes = 1e6, .ranks = 1.0}, device_with_link(63e9)),
            0.0);
}

TEST(CollectiveLaw, TheFastestLineIsTakenAndTheSwitchIsWhereTheyCross) {
  CollectiveLaw<double> law = pcie_one_shot();
  law.ll = {4e-6, 0.0, 0.1};
  law.simple = {10e-6, 0.0, 0.5};
  law.fast_share_4 = law.simple_share_4 = 1.0;
  // 2 ranks, f = 1: 4 + S/10e9 = 10 + S/50e9 (us, bytes) -> S = 6e-6 / (1/10e9 - 1/50e9) = 75 kB.
  const LawDevice d = device_with_link(100e9);
  const auto seconds = [&](double bytes) {
    return collective_seconds(law, {}, {.bytes = bytes, .ranks = 2.0}, d);
  };
  EXPECT_NEAR(seconds(74.9e3), 4e-6 + 74.9e3 / 10e9, 1e-12);
  EXPECT_NEAR(seconds(75.1e3), 10e-6 + 75.1e3 / 50e9, 1e-12);
}

TEST(CollectiveLaw, MoreBytesOrASlowerLinkNeverHelps) {
  CollectiveLaw<double> law = pcie_one_shot();
  law.ll = {4e-6, 0.5e-6, 0.2};
  law.simple = {10e-6, 1e-6, 0.6};
  const CollectiveStructure structure{.one_shot_max_ranks = 8.0};
  for (double ranks : {2.0, 3.0, 4.0, 6.0, 8.0}) {
    double previous = 0.0;
    for (double bytes = 64.0; bytes < 1e9; bytes *= 1.5) {
      const CollectiveLaunch launch{.bytes = bytes, .ranks = ranks};
      const double t = collective_seconds(law, structure, launch, device_with_link(50e9));
      EXPECT_GE(t, previous);
      EXPECT_LE(collective_seconds(law, structure, launch, device_with_link(60e9)), t);
      previous = t;
    }
  }
}

TEST(CollectiveLaw, AnEagerLaunchCostsAtLeastTheHostsTime) {
  CollectiveLaw<double> law = pcie_one_shot();
  law.host_floor_seconds = 20e-6;
  const CollectiveStructure structure{.one_shot_max_ranks = 8.0, .eager = true};
  EXPECT_DOUBLE_EQ(
      collective_seconds(law, structure, {.bytes = 1024.0, .ranks = 4.0}, device_with_link(63e9)),
      20e-6);
}

}  // namespace
}  // namespace fulcrum
