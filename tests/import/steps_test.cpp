// Steps of a decode loop found from its kernels alone.
#include "calibrate/trace/steps.h"

#include <gtest/gtest.h>

#include <random>

#include "calibrate/trace/kernel_trace.h"
#include "tests/import/synthetic_decode.h"

namespace fulcrum::calibrate {
namespace {

using import_test::synthetic_kernels;
using import_test::SyntheticLoop;

StepSearch search(const std::vector<import_test::SyntheticKernel>& kernels,
                  const std::optional<std::regex>& anchor = {}) {
  KernelTrace trace;
  const std::uint16_t device = trace.device_index("GPU 0");
  for (const auto& k : kernels) {
    trace.add({k.start_ns, k.duration_ns, trace.name_index(k.name),
               static_cast<std::uint32_t>(k.stream), k.launch, device, k.in_graph});
  }
  return find_steps(trace.of_device(device), trace.names(), anchor);
}

/// 1 embedding, 43 layers of 8 (one on the side stream), head and argmax.
constexpr std::size_t kKernelsPerStep = 1 + 43 * 8 + 2;

TEST(Steps, OfASteadyLoopAreAllFound) {
  const StepSearch found = search(synthetic_kernels({}));
  ASSERT_EQ(found.steps.size(), 19U) << found.anchor;  // 20 marks bound 19 steps
  EXPECT_EQ(found.num_typical(), 19U);
  for (const Step& step : found.steps) ASSERT_EQ(step.last - step.first, kKernelsPerStep);
  EXPECT_NEAR(found.regularity, 1.0, 1e-12);
}

TEST(Steps, AreNotMistakenForLayersOrDraftPasses) {
  const StepSearch found = search(synthetic_kernels({.num_drafts = 5}));
  EXPECT_EQ(found.steps.size(), 19U) << found.anchor;
  EXPECT_EQ(found.steps.front().last - found.steps.front().first, kKernelsPerStep + 5 * 4);
}

TEST(Steps, AreNotMergedByWorkOfEverySecondOne) {
  const StepSearch found = search(synthetic_kernels({.extra_kernel_every = 2}));
  EXPECT_EQ(found.steps.size(), 19U) << found.anchor;
}

TEST(Steps, OfPrefillAreSetApart) {
  const StepSearch found =
      search(synthetic_kernels({.num_steps = 30, .prefill_before = {4, 11, 20}}));
  EXPECT_EQ(found.steps.size(), 29U) << found.anchor;
  EXPECT_EQ(found.num_typical(), 26U);
}

TEST(Steps, AreFoundWhereNoKernelRunsOnce) {
  SyntheticLoop loop;
  std::vector<import_test::SyntheticKernel> kernels;
  for (const auto& k : synthetic_kernels(loop)) {
    if (k.name != "vocab_parallel_embedding_kernel" && k.name != "argmax_kernel") {
      kernels.push_back(k);
      if (k.name == "nvjet_lm_head") {  // twice in a row, and nothing once
        kernels.push_back(k);
        kernels.back().start_ns += k.duration_ns;
      }
    }
  }
  const StepSearch found = search(kernels);
  EXPECT_EQ(found.steps.size(), 19U) << found.anchor;
  EXPECT_EQ(found.anchor_stride, 2U);
}

TEST(Steps, FollowTheUsersAnchor) {
  const StepSearch found = search(synthetic_kernels({}), std::regex("lm_head"));
  EXPECT_EQ(found.anchor, "nvjet_lm_head");
  EXPECT_EQ(found.steps.size(), 19U);
  EXPECT_TRUE(search(synthetic_kernels({}), std::regex("nosuch")).steps.empty());
}

TEST(Steps, AreNotInventedInNoise) {
  std::mt19937_64 random(7);
  std::vector<import_test::SyntheticKernel> kernels;
  for (int i = 0; i < 5000; ++i) {
    kernels.push_back({"kernel_" + std::to_string(random() % 2000), i * 1000, 900, 7,
                       static_cast<std::uint32_t>(i), false});
  }
  EXPECT_TRUE(search(kernels).steps.empty());
  EXPECT_TRUE(search({}).steps.empty());
  EXPECT_TRUE(search({{"one", 0, 10, 7, 1, false}}).steps.empty());
}

}  // namespace
}  // namespace fulcrum::calibrate
