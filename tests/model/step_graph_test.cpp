#include "model/step_graph.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "model/tally.h"
#include "model/weights.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

StepGraph flash_graph(int tp, int drafts = 0) {
  GraphSettings settings;
  settings.tensor_parallel = tp;
  settings.max_context = 1 << 20;
  settings.num_draft_tokens = drafts;
  return build_step_graph(test::model("deepseek-v4-flash"), settings);
}

double count_of_slot(const StepGraph& graph, std::string_view slot) {
  double count = 0.0;
  for (const StepOp& op : graph.ops) {
    if (!op.draft && slot_of(op.id) == slot) count += op.count;
  }
  return count;
}

const StepOp& op_of(const StepGraph& graph, OpId id) {
  for (const StepOp& op : graph.ops) {
    if (op.id == id && !op.draft) return op;
  }
  throw std::logic_error("op not in graph");
}

TEST(StepGraph, AForwardHas236BlockGemmsAnd87AllReduces) {
  for (int tp : {2, 4, 8}) {
    const StepGraph graph = flash_graph(tp);
    EXPECT_EQ(count_of_slot(graph, "fp8_gemm"), 236.0);
    EXPECT_EQ(count_of_slot(graph, "all_reduce"), 87.0);
    EXPECT_EQ(count_of_slot(graph, "all_gather"), 1.0);
  }
}

TEST(StepGraph, Tp4HasExactlyTheFiveTunedShapes) {
  std::set<std::pair<double, double>> shapes;
  for (const StepOp& op : flash_graph(4).ops) {
    if (slot_of(op.id) != "fp8_gemm") continue;
    const auto& gemm = std::get<GemmLaunch>(op.shape);
    shapes.emplace(gemm.n, gemm.k);
  }
  const std::set<std::pair<double, double>> campaign{
      {1024, 4096}, {1536, 4096}, {4096, 2048}, {4096, 512}, {8192, 1024}};
  EXPECT_EQ(shapes, campaign);
}

TEST(StepGraph, ASingleGpuSendsNoMessage) {
  for (const StepOp& op : flash_graph(1, 3).ops) {
    EXPECT_NE(op.family, OpFamily::kCollective);
    EXPECT_NE(op.id, OpId::kAllReduce);
    EXPECT_NE(op.id, OpId::kAllGather);
  }
}

TEST(StepGraph, LayersOfEachKindAreCounted) {
  const StepGraph graph = flash_graph(4);
  EXPECT_EQ(op_of(graph, OpId::kAttentionSwa).count, 2.0);
  EXPECT_EQ(op_of(graph, OpId::kAttentionCsa).count, 21.0);
  EXPECT_EQ(op_of(graph, OpId::kAttentionHca).count, 20.0);
  EXPECT_EQ(op_of(graph, OpId::kMhcPre).count, 86.0);
  EXPECT_EQ(op_of(graph, OpId::kCompressorState).count, 62.0);
}

TEST(StepGraph, WeightBytesOfTheGraphAreThoseOfTheCheckpoint) {
  // Independent sums: the graph's launches against the tensor list. The graph counts no norms,
  // biases or compressor tables (below 0.1 % of the total).
  const ModelConfig model = test::model("deepseek-v4-flash");
  for (int tp : {1, 2, 4, 8}) {
    const StepGraph graph = flash_graph(tp);
    Bytes sum;
    for (const StepOp& op : graph.ops) {
      sum += op.count * tally(launch_at(graph, op, StepState{.context = 1024})).weights;
    }
    const Bytes expected = bytes_read_per_step(model, {.tensor_parallel = tp}, 6.0);
    EXPECT_NEAR(sum / expected, 1.0, 5e-3) << "TP" << tp;
  }
}

TEST(StepGraph, PaddedHeadsDoNotShrinkWithTensorParallelism) {
  for (int tp : {1, 2, 4, 8}) {
    GraphSettings settings;
    settings.tensor_parallel = tp;
    settings.traits.heads_padded_to = 64;
    const StepGraph graph = build_step_graph(test::model("deepseek-v4-flash"), settings);
    EXPECT_EQ(std::get<AttentionLaunch>(op_of(graph, OpId::kAttentionHca).shape).heads, 64.0);
  }
}

TEST(StepGraph, ConfiguredWidthsFollowTheConfigurationAndLiveOnesTheContext) {
  GraphSettings settings;
  settings.max_context = 131072;
  settings.traits.attention_rows = Width::kConfigured;
  settings.traits.indexer_keys = Width::kConfigured;
  const StepGraph padded = build_step_graph(test::model("deepseek-v4-flash"), settings);
  const StepState state{.requests = 2, .context = 1023};
  const auto hca =
      std::get<AttentionLaunch>(launch_at(padded, op_of(padded, OpId::kAttentionHca), state));
  EXPECT_EQ(hca.padded_selected_rows, 1024.0);
  EXPECT_EQ(hca.selected_rows, 8.0);
  EXPECT_EQ(hca.window_rows, 128.0);
  const auto scan =
      std::get<ContextScanLaunch>(launch_at(padded, op_of(padded, OpId::kIndexerLogits), state));
  EXPECT_EQ(scan.padded_keys, 32768.0);
  EXPECT_EQ(scan.keys, 256.0);
  settings.traits = {};
  const StepGraph live = build_step_graph(test::model("deepseek-v4-flash"), settings);
  const auto live_scan =
      std::get<ContextScanLaunch>(launch_at(live, op_of(live, OpId::kIndexerLogits), state));
  EXPECT_EQ(live_scan.padded_keys, 256.0);
}

TEST(StepGraph, DraftPassesRepeatOneLayerAndTheHead) {
  const StepGraph one = flash_graph(4, 1);
  const StepGraph three = flash_graph(4, 3);
  const auto draft_count = [](const StepGraph& graph, OpId id) {
    double count = 0.0;
    for (const StepOp& op : graph.ops) {
      if (op.draft && op.id == id) count += op.count;
    }
    return count;
  };
  for (OpId id : {OpId::kMtpEProj, OpId::kMtpHProj, OpId::kLmHead, OpId::kRoutedExperts}) {
    EXPECT_EQ(draft_count(one, id), 1.0) << name_of(id);
    EXPECT_EQ(draft_count(three, id), 3.0) << name_of(id);
  }
  EXPECT_EQ(draft_count(three, OpId::kAllReduce), 9.0);  // two per layer and the embedding
  for (const StepOp& op : three.ops) {
    EXPECT_EQ(op.family == OpFamily::kDraft || (op.draft && op.family == OpFamily::kCollective),
              op.draft)
        << name_of(op.id);
  }
}

TEST(StepGraph, VerificationSharesTheTokensOfARequest) {
  const StepGraph graph = flash_graph(4, 1);
  const StepState state{.requests = 4, .tokens_per_request = 2, .context = 100, .logits_rows = 8};
  const auto gemm = std::get<GemmLaunch>(launch_at(graph, op_of(graph, OpId::kWqkvA), state));
  EXPECT_EQ(gemm.m, 8.0);
  const auto moe = std::get<MoeLaunch>(launch_at(graph, op_of(graph, OpId::kRoutedExperts), state));
  EXPECT_EQ(moe.tokens, 8.0);
  EXPECT_EQ(moe.tokens_per_request, 2.0);
}

TEST(StepGraph, ProHasNoSlidingWindowOnlyLayers) {
  const StepGraph graph = build_step_graph(test::model("deepseek-v4-pro"), {});
  EXPECT_EQ(op_of(graph, OpId::kAttentionHca).count, 31.0);
  EXPECT_EQ(op_of(graph, OpId::kAttentionCsa).count, 30.0);
  for (const StepOp& op : graph.ops) EXPECT_NE(op.id, OpId::kAttentionSwa);
}

TEST(TensorParallel, ADegreeThatDoesNotDivideNamesTheField) {
  const ModelConfig model = test::model("deepseek-v4-flash");
  EXPECT_FALSE(tensor_parallel_problem(model, 8));
  ASSERT_TRUE(tensor_parallel_problem(model, 3));
  EXPECT_NE(tensor_parallel_problem(model, 3)->find("o_groups = 8"), std::string::npos);
  ASSERT_TRUE(tensor_parallel_problem(model, 16));
  EXPECT_NE(tensor_parallel_problem(model, 16)->find("o_groups"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum
