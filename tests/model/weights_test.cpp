#include "model/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/kv_cache.h"
#include "model/kv_pools.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

constexpr double kPublishedTolerance = 1e-3;  // tokenizer and headers are in the repository too
constexpr double kFactsTolerance = 5e-3;      // the facts tables give 3-4 digits

void expect_close(double got, double want, double relative) {
  EXPECT_NEAR(got, want, relative * std::abs(want)) << "off by " << got / want - 1.0;
}

TEST(Weights, FlashTotalIsThePublishedRepositorySize) {
  const double total = checkpoint_bytes(test::model("deepseek-v4-flash")).total().value();
  expect_close(total, 159'641'337'663.0, kPublishedTolerance);  // Hugging Face, 46 shards
  expect_close(total, 159.609e9, 1e-5);
}

TEST(Weights, ProTotalIsThePublishedRepositorySize) {
  const double total = checkpoint_bytes(test::model("deepseek-v4-pro")).total().value();
  expect_close(total, 864'761'623'612.0, kPublishedTolerance);  // Hugging Face, 64 shards
  expect_close(total, 864.705e9, 1e-5);
}

TEST(Weights, Nvfp4ConvertsTheBackboneExpertsOnly) {
  const ModelConfig model = test::model("deepseek-v4-flash-nvfp4");
  EXPECT_EQ(model.expert_format, ExpertFormat::kNvfp4);
  EXPECT_EQ(model.mtp_expert_format, ExpertFormat::kMxfp4);
  const WeightBytes bytes = checkpoint_bytes(model);
  expect_close(bytes.of(WeightComponent::kRoutedExperts).value(), 155.83e9, kFactsTolerance);
  expect_close(bytes.backbone().value(), 164.67e9, kFactsTolerance);
  EXPECT_EQ(bytes.of(WeightComponent::kMtp),
            checkpoint_bytes(test::model("deepseek-v4-flash")).of(WeightComponent::kMtp));
}

TEST(Weights, ComponentsAreThoseOfTheTensorHeaders) {
  // Sums of the tensor shapes in the checkpoint's safetensors headers, in bytes.
  const WeightBytes bytes = checkpoint_bytes(test::model("deepseek-v4-flash"));
  EXPECT_EQ(bytes.of(WeightComponent::kWqkvA).value(), 270'549'120.0);
  EXPECT_EQ(bytes.of(WeightComponent::kWqB).value(), 1'442'928'640.0);
  EXPECT_EQ(bytes.of(WeightComponent::kWoA).value(), 1'442'928'640.0);
  EXPECT_EQ(bytes.of(WeightComponent::kWoB).value(), 1'442'928'640.0);
  EXPECT_EQ(bytes.of(WeightComponent::kNorms).value(), 847'616.0);
  EXPECT_EQ(bytes.of(WeightComponent::kRoutedExperts).value(), 147'169'738'752.0);
  EXPECT_EQ(bytes.of(WeightComponent::kSharedExperts).value(), 1'082'196'480.0);
  EXPECT_EQ(bytes.of(WeightComponent::kGate).value(), 90'177'536.0);
  EXPECT_EQ(bytes.of(WeightComponent::kGateBias).value(), 18'657'280.0);
  EXPECT_EQ(bytes.of(WeightComponent::kHyperConnections).value(), 135'275'592.0);
  EXPECT_EQ(bytes.of(WeightComponent::kCompressors).value(), 525'722'624.0);
  EXPECT_EQ(bytes.of(WeightComponent::kIndexerWqB).value(), 176'171'520.0);
  EXPECT_EQ(bytes.of(WeightComponent::kIndexerWeightsProj).value(), 11'010'048.0);
  EXPECT_EQ(bytes.of(WeightComponent::kIndexerCompressors).value(), 88'171'776.0);
  EXPECT_EQ(bytes.of(WeightComponent::kEmbedding).value(), 1'059'061'760.0);
  EXPECT_EQ(bytes.of(WeightComponent::kHead).value(), 1'059'061'760.0);
  EXPECT_EQ(bytes.of(WeightComponent::kMtp).value(), 3'593'787'756.0);
}

struct PerRank {
  int tp;
  double backbone_gb;
  double backbone_bf16_wo_a_gb;
  double mtp_gb;
  double step_mb;
  double step_bf16_wo_a_mb;
};

TEST(Weights, PerRankAndPerStepBytesAreThoseOfTheFacts) {
  // model_facts section 3.2.
  constexpr PerRank kTable[] = {{1, 156.02, 157.46, 3.59, 11218, 12660},
                                {2, 78.67, 79.39, 1.82, 6258, 6979},
                                {4, 39.99, 40.35, 0.93, 3778, 4139},
                                {8, 20.65, 20.83, 0.49, 2538, 2719}};
  const ModelConfig model = test::model("deepseek-v4-flash");
  for (const PerRank& row : kTable) {
    WeightLayout layout{.tensor_parallel = row.tp};
    const WeightBytes bytes = rank_bytes(model, layout);
    expect_close(bytes.backbone().value(), row.backbone_gb * 1e9, kFactsTolerance);
    expect_close(bytes.of(WeightComponent::kMtp).value(), row.mtp_gb * 1e9, kFactsTolerance);
    expect_close(bytes_read_per_step(model, layout, 6.0).value(), row.step_mb * 1e6,
                 kFactsTolerance);
    layout.wo_a_bf16 = true;
    expect_close(rank_bytes(model, layout).backbone().value(), row.backbone_bf16_wo_a_gb * 1e9,
                 kFactsTolerance);
    expect_close(bytes_read_per_step(model, layout, 6.0).value(), row.step_bf16_wo_a_mb * 1e6,
                 kFactsTolerance);
  }
}

TEST(Weights, ShardedBytesTimesRanksAreNeverLessThanTheWhole) {
  for (const char* name : {"deepseek-v4-flash", "deepseek-v4-pro", "deepseek-v4-flash-nvfp4"}) {
    const ModelConfig model = test::model(name);
    const Bytes whole = checkpoint_bytes(model).total();
    Bytes previous = whole;
    for (int tp : {2, 4, 8}) {
      const Bytes rank = rank_bytes(model, {.tensor_parallel = tp}).total();
      EXPECT_GE(rank * tp, whole) << name << " TP" << tp;
      EXPECT_LT(rank, previous);
      previous = rank;
    }
  }
}

TEST(Kv, BytesPerTokenAre3850And3514WithTheFp4Indexer) {
  const ModelConfig model = test::model("deepseek-v4-flash");
  // 21 CSA x (584 + 132) / 4 + 20 HCA x 584 / 128 = 3759 + 91.25
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(model, KvFormat{}).value(), 3850.25);
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(model, {.index_row_bytes = kFp4IndexRowBytes}).value(),
                   3514.25);
  const ModelConfig pro = test::model("deepseek-v4-pro");
  expect_close(kv_bytes_per_token(pro, KvFormat{}).value(), 5511, 1e-3);
  expect_close(kv_bytes_per_token(pro, {.index_row_bytes = kFp4IndexRowBytes}).value(), 5031, 1e-3);
}

TEST(Kv, FixedBytesPerRequestAreThoseOfTheFacts) {
  const ModelConfig model = test::model("deepseek-v4-flash");
  const RequestStateBytes plain = request_state_bytes(model, KvFormat{}, false);
  expect_close(plain.window.value(), 3.21e6, kFactsTolerance);
  expect_close(plain.csa_state.value(), 1.38e6, kFactsTolerance);
  expect_close(plain.indexer_state.value(), 0.344e6, kFactsTolerance);
  expect_close(plain.hca_state.value(), 10.5e6, kFactsTolerance);
  const RequestStateBytes speculative = request_state_bytes(model, KvFormat{}, true);
  EXPECT_EQ(speculative.hca_state, 2.0 * plain.hca_state);
}

TEST(Kv, SglangPoolTokensCost7705BytesPlainAnd9260WithSpeculation) {
  const ModelConfig model = test::model("deepseek-v4-flash");
  EXPECT_NEAR(sglang_pool_token(model, KvFormat{}, {}, false).total().value(), 7705, 1.0);
  EXPECT_NEAR(sglang_pool_token(model, KvFormat{}, {}, true).total().value(), 9260, 1.0);
}

}  // namespace
}  // namespace fulcrum
