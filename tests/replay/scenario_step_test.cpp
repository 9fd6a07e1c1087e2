// What `replay --scenario` would run, for shipped scenarios. No GPU needed.
#include "replay/scenario_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "model/io/load_scenario.h"

namespace fulcrum::replay {
namespace {

Deployment deployment_of(const std::string& name) {
  std::vector<std::string> warnings;
  return io::resolve_scenario(io::read_scenario(name), warnings);
}

const ScenarioOp& op_of(const ScenarioStep& step, const std::string& name) {
  const auto found = std::find_if(step.ops.begin(), step.ops.end(),
                                  [&](const ScenarioOp& op) { return op.op == name; });
  if (found == step.ops.end()) throw std::out_of_range(name);
  return *found;
}

TEST(ScenarioStep, EveryOpHasAKernelOrAReason) {
  for (const char* name :
       {"campaign-stock", "campaign-a", "campaign-b", "b12x-tp4", "maxq-dspark-tp2"}) {
    for (const double concurrency : {1.0, 16.0}) {
      const ScenarioStep step = scenario_step(deployment_of(name), concurrency);
      EXPECT_GT(step.ops.size(), 20u) << name;
      for (const ScenarioOp& op : step.ops) {
        EXPECT_NE(op.binding.kernel.empty(), op.binding.absence.empty()) << name << " " << op.op;
        EXPECT_GT(op.count, 0.0) << name << " " << op.op;
      }
    }
  }
}

// Flash at TP4 (model_facts section 2.2): 43 layers' routed experts of width 2048 / 4, and 16
// requests of one token each.
TEST(ScenarioStep, CampaignAtSixteenRequestsRunsTheRoutedExpertsOfOneRank) {
  const ScenarioStep step = scenario_step(deployment_of("campaign-a"), 16.0);
  EXPECT_EQ(step.state.tokens(), 16.0);
  const ScenarioOp& experts = op_of(step, "routed_experts");
  EXPECT_EQ(experts.count, 43.0);
  EXPECT_EQ(experts.binding.kernel, "moe_grouped");
  EXPECT_EQ(experts.binding.shape, "t=16,hidden=4096,width=512,experts=256,topk=6,nvfp4=0");
}

TEST(ScenarioStep, DraftsSeeOneTokenPerRequestAfterTheVerifiedOnes) {
  const Deployment deployment = deployment_of("campaign-b");
  ASSERT_GT(deployment.speculation.draft_tokens, 0);
  const ScenarioStep step = scenario_step(deployment, 4.0);
  EXPECT_EQ(step.state.tokens(), 4.0 * (1.0 + deployment.speculation.draft_tokens));
  EXPECT_EQ(op_of(step, "routed_experts").binding.shape.substr(0, 4),
            "t=" + std::to_string(static_cast<int>(step.state.tokens())) + ",");
  EXPECT_NO_THROW(op_of(step, "draft.routed_experts"));
}

TEST(ScenarioStep, DistinctKernelsKeepEveryLaunch) {
  const ScenarioStep step = scenario_step(deployment_of("campaign-a"), 8.0);
  double launches = 0.0;
  for (const ScenarioOp& op : step.ops) {
    if (!op.binding.kernel.empty()) launches += op.count * op.binding.launches;
  }
  double distinct = 0.0;
  std::set<std::string> seen;
  for (const ScenarioKernel& k : distinct_kernels(step)) {
    distinct += k.launches;
    EXPECT_TRUE(seen.insert(k.kernel + " " + k.shape).second) << k.kernel << " " << k.shape;
  }
  EXPECT_EQ(distinct, launches);
}

}  // namespace
}  // namespace fulcrum::replay
