// Usage errors and the registry's promises; nothing here needs a GPU.
#include "replay/command.h"

#include <gtest/gtest.h>

#include <set>

#include "replay/options.h"
#include "replay/registry.h"

namespace fulcrum::replay {
namespace {

int command(std::vector<std::string> words) {
  words.insert(words.begin(), "fulcrum_replay");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return run_replay_command(static_cast<int>(argv.size()), argv.data());
}

ReplayOptions options(std::vector<const char*> words) {
  words.insert(words.begin(), "fulcrum_replay");
  return parse_options(static_cast<int>(words.size()), words.data());
}

TEST(ReplayCommand, BadUsageExitsWithTwo) {
  EXPECT_EQ(command({}), 2);
  EXPECT_EQ(command({"no_such_kernel"}), 2);
  EXPECT_EQ(command({"spin", "--shapes", "ns=0"}), 2);
  EXPECT_EQ(command({"spin", "--cache", "lukewarm"}), 2);
  EXPECT_EQ(command({"--plan", "everything"}), 2);
  EXPECT_EQ(command({"--no-such-option"}), 2);
}

TEST(ReplayCommand, AScenarioIsItsKernelsOnceEach) {
  EXPECT_EQ(command({"--scenario", "no-such-scenario"}), 2);
  EXPECT_EQ(command({"--concurrency", "4"}), 2);
  EXPECT_EQ(command({"--scenario", "campaign-a", "--concurrency", "0.5"}), 2);
  EXPECT_EQ(command({"spin", "--scenario", "campaign-a"}), 2);
  EXPECT_EQ(command({"--plan", "verify", "--scenario", "campaign-a"}), 2);
  EXPECT_EQ(command({"--scenario", "campaign-a", "--list"}), 0);
  const auto chosen = options({"--scenario", "campaign-a", "--concurrency", "16"});
  ASSERT_TRUE(chosen.scenario.has_value());
  EXPECT_EQ(chosen.items.size(), distinct_kernels(*chosen.scenario).size());
}

TEST(ReplayCommand, HelpAndListNeedNoGpu) {
  EXPECT_EQ(command({"--help"}), 0);
  EXPECT_EQ(command({"--list"}), 0);
}

TEST(ReplayCommand, EachKernelIsVerifiedOnceAndTimedInEveryMode) {
  const auto items =
      options({"spin", "--shapes", "ns=1000;ns=2000", "--cache", "both", "--launch", "both"}).items;
  ASSERT_EQ(items.size(), 8u);
  EXPECT_TRUE(items[0].verify);
  EXPECT_FALSE(items[1].verify);
  EXPECT_TRUE(items[4].verify);
  std::set<std::string> keys;
  for (const PlanItem& item : items) keys.insert(item.key());
  EXPECT_EQ(keys.size(), 8u);
}

TEST(Registry, EveryEntryIsCompleteAndNamedOnce) {
  std::set<std::string> names;
  for (const KernelEntry& kernel : registry()) {
    EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
    EXPECT_FALSE(kernel.family.empty()) << kernel.name;
    EXPECT_FALSE(kernel.summary.empty()) << kernel.name;
    EXPECT_NE(kernel.claim, nullptr) << kernel.name;
    EXPECT_NE(kernel.rotating_bytes, nullptr) << kernel.name;
    EXPECT_NE(kernel.unsupported, nullptr) << kernel.name;
    EXPECT_NE(kernel.make, nullptr) << kernel.name;
  }
}

TEST(Registry, PlansParseAndTheirClaimsArePositive) {
  const auto check = [](const std::vector<PlanItem>& items) {
    for (const PlanItem& item : items) {
      if (item.kernel->family == "selftest") continue;
      EXPECT_GT(item.kernel->claim(item.shape).bytes, 0) << item.key();
      EXPECT_GE(item.kernel->claim(item.shape).flop, 0) << item.key();
    }
  };
  check(verification_plan(registry()));
  check(calibration_plan(registry()));
}

TEST(Registry, FaultsAreInNoPlan) {
  for (const PlanItem& item : calibration_plan(registry())) EXPECT_NE(item.kernel->family, "fault");
  for (const PlanItem& item : verification_plan(registry()))
    EXPECT_NE(item.kernel->family, "fault");
}

TEST(Registry, EveryComputingKernelHasShapesToVerify) {
  for (const KernelEntry& kernel : registry()) {
    if (kernel.family == "selftest" || kernel.family == "fault") continue;
    EXPECT_FALSE(kernel.verify_shapes.empty()) << kernel.name;
  }
}

}  // namespace
}  // namespace fulcrum::replay
