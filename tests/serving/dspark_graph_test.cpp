// DSpark's draft: its launches against a published profile, its bytes against the checkpoint.
#include <gtest/gtest.h>

#include <map>

#include "model/errors.h"
#include "model/kv_pools.h"
#include "model/predict.h"
#include "model/step_graph.h"
#include "model/weights.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

StepGraph graph_of(int tp, int block) {
  GraphSettings settings;
  settings.tensor_parallel = tp;
  settings.draft_method = DraftMethod::kDspark;
  settings.num_draft_tokens = block;
  return build_step_graph(test::model("deepseek-v4-flash-0731"), settings);
}

std::map<std::string_view, double> draft_counts(const StepGraph& graph, bool by_slot) {
  std::map<std::string_view, double> counts;
  for (const StepOp& op : graph.ops) {
    if (op.draft) counts[by_slot ? slot_of(op.id) : name_of(op.id)] += op.count;
  }
  return counts;
}

TEST(DsparkGraph, LaunchesAreThoseOfAPublishedProfile) {
  // hfyeomans/deepseek-v4-flash-nvfp4-tp2, results/component-profiles/code-c1-rank0.json, draft
  // pipeline of one step at TP2, block 5: 12 all-reduces, 1 all-gather, 3 attentions, 3 wo_a, 3
  // expert layers (2 kernels each), lm_head once and the Markov head 5 times, 5 samplings, 20 block
  // GEMMs. The graph has 19 of the 20: 5 a stage, main_proj, 3 context keys.
  const StepGraph graph = graph_of(2, 5);
  auto op = draft_counts(graph, false);
  EXPECT_EQ(op["all_reduce"], 12.0);
  EXPECT_EQ(op["all_gather"], 1.0);
  EXPECT_EQ(op["attention_swa"], 3.0);
  EXPECT_EQ(op["wo_a"], 3.0);
  EXPECT_EQ(op["routed_experts"], 3.0);
  EXPECT_EQ(op["lm_head"], 1.0);
  EXPECT_EQ(op["markov_head"], 5.0);
  EXPECT_EQ(op["sampling"], 5.0);
  EXPECT_EQ(draft_counts(graph, true)["fp8_gemm"], 19.0);
}

TEST(DsparkGraph, TheBlockIsOnePassAndTheMarkovChainOneTokenAPosition) {
  const StepGraph graph = graph_of(2, 5);
  const StepState state{.requests = 4, .tokens_per_request = 6, .context = 100, .logits_rows = 24};
  for (const StepOp& op : graph.ops) {
    if (!op.draft) continue;
    const Launch launch = launch_at(graph, op, state);
    if (op.id == OpId::kWqkvA || op.id == OpId::kLmHead) {
      EXPECT_EQ(std::get<GemmLaunch>(launch).m, 4.0 * 5.0);
    } else if (op.id == OpId::kDsparkMainProj) {
      EXPECT_EQ(std::get<GemmLaunch>(launch).m, 4.0 * 6.0);
      EXPECT_EQ(std::get<GemmLaunch>(launch).k, 3.0 * 4096.0);
    } else if (op.id == OpId::kMarkovHead) {
      EXPECT_EQ(std::get<GemmLaunch>(launch).m, 4.0);
      EXPECT_EQ(op.count, 5.0);
    } else if (op.id == OpId::kRoutedExperts) {
      EXPECT_EQ(std::get<MoeLaunch>(launch).tokens_per_request, 5.0);
    }
  }
}

TEST(DsparkGraph, WithoutABlockNothingIsDrafted) {
  for (const StepOp& op : graph_of(2, 0).ops) EXPECT_FALSE(op.draft);
}

TEST(DsparkWeights, TheCheckpointHasThePublishedBytes) {
  // Draft 10.863 GB by the headers; repository 166 886 718 583 B with tokenizer and headers.
  const WeightBytes bytes = checkpoint_bytes(test::model("deepseek-v4-flash-0731"));
  EXPECT_NEAR(bytes.of(WeightComponent::kMtp).value(), 10.863e9, 1e-4 * 10.863e9);
  EXPECT_NEAR(bytes.total().value(), 166'886'718'583.0, 1e-3 * 166'886'718'583.0);
}

TEST(DsparkWeights, HandSumOfTheDraft) {
  // A stage: as mtp.0 of June less projections (2 x 16 778 240), three norms (24 576) and hc_head
  // (4 x 16 384 + 5 floats = 262 164): 3 593 787 756 - 33 556 480 - 24 576 - 262 164.
  const double stage = 3'593'787'756.0 - 33'556'480.0 - 24'576.0 - 262'164.0;
  const double main_proj = 4096.0 * 12288.0 + 32.0 * 96.0;
  const double markov = 2.0 * 129280.0 * 256.0 * 2.0;
  const double rest = 2.0 * 8192.0 + 4352.0 * 2.0 + 262'164.0;
  EXPECT_DOUBLE_EQ(
      checkpoint_bytes(test::model("deepseek-v4-flash-0731")).of(WeightComponent::kMtp).value(),
      3.0 * stage + main_proj + markov + rest);
}

TEST(DsparkMemory, ThreeStagesWidenThePoolTokenByThreeLayers) {
  const PoolTokenBytes mtp =
      sglang_pool_token(test::model("deepseek-v4-flash"), KvFormat{}, {}, true);
  const PoolTokenBytes dspark =
      sglang_pool_token(test::model("deepseek-v4-flash-0731"), KvFormat{}, {}, true);
  EXPECT_NEAR(dspark.total() / mtp.total(), 46.0 / 44.0, 1e-12);
}

TEST(DsparkScenario, MethodsAndWorkloadsOfTheOtherKindAreRefused) {
  const auto refused = [](const test::Changes& changes) {
    EXPECT_THROW(test::deployment("maxq-dspark-tp2", changes), InputError);
  };
  refused({{"/speculation/method", "mtp"}, {"/speculation/draft_tokens", 5}});
  refused({{"/model", "deepseek-v4-flash"}});
  const nlohmann::json other{{"method", "dspark"}, {"block", 2}, {"workload", "mt-bench"}};
  refused({{"/speculation", other}});
  refused({{"/speculation/block", 0}});
}

TEST(DsparkScenario, ZeroAcceptanceIsSlowerThanNoDrafts) {
  Deployment with = test::deployment("maxq-dspark-tp2");
  with.speculation.acceptance.assign(5, 0.0);
  Deployment without = with;
  without.speculation = Speculation{};
  for (double c : {1.0, 8.0, 32.0}) {
    EXPECT_LT(closed_loop_throughput(with, c).output_tokens_per_second,
              closed_loop_throughput(without, c).output_tokens_per_second);
  }
}

}  // namespace
}  // namespace fulcrum
