// A short model on a GPU: the chain of a layer against a host composition, eager against graph.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/common/formats.h"
#include "kernels/elementwise/elementwise_reference.h"
#include "kernels/gemm/fp8_block_gemm_reference.h"
#include "kernels/mhc/mhc_reference.h"
#include "model/io/load_model.h"
#include "replay/step/runner.h"
#include "replay/step/step_options.h"
#include "replay/worker.h"

namespace fulcrum::replay {
namespace {

/// Three layers, one of each kind, fewer experts and words; all other shapes are the model's.
ModelConfig short_model() {
  ModelConfig model =
      io::load_model(std::string(FULCRUM_SOURCE_DIR) + "/data/models/deepseek-v4-flash.json");
  model.layers = {LayerKind::kSwa, LayerKind::kCsa, LayerKind::kHca};
  model.num_layers = 3;
  model.num_experts = 128;
  model.vocab = 8192;
  return model;
}

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

std::vector<std::uint16_t> to_bf16(const std::vector<double>& values) {
  std::vector<std::uint16_t> codes;
  for (const double value : values)
    codes.push_back(kernels::encode_bf16(static_cast<float>(value)));
  return codes;
}

/// Norm of the difference over the norm of the reference, over the first elements of `got`.
double relative_error(const std::vector<std::uint16_t>& got,
                      const std::vector<std::uint16_t>& want) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double w = kernels::decode_bf16(want[i]);
    difference += std::pow(kernels::decode_bf16(got[i]) - w, 2);
    norm += w * w;
  }
  return std::sqrt(difference / norm);
}

std::vector<float> scales_of(const std::vector<std::uint8_t>& codes) {
  std::vector<float> scales;
  for (const std::uint8_t code : codes) scales.push_back(kernels::decode_e8m0(code));
  return scales;
}

/// Quantised rows times a block-scaled weight, as BF16.
std::vector<std::uint16_t> project(const std::vector<std::uint16_t>& in, int rows, int n, int k,
                                   const Fp8Matrix& weight) {
  std::vector<std::uint8_t> codes(in.size());
  std::vector<float> scales(in.size() / 128);
  kernels::group_quantize_reference({.num_rows = rows,
                                     .dim = k,
                                     .in = in.data(),
                                     .codes = codes.data(),
                                     .scales = scales.data()});
  return to_bf16(kernels::fp8_block_gemm_reference(codes, scales, weight.codes.download(),
                                                   scales_of(weight.scales.download()), rows, n, k)
                     .y);
}

class StepGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU";
    model_ = short_model();
    graph_ = reference_graph(model_, 4, 1);
    l2_bytes_ = describe_device().l2_bytes;
    rank_ = std::make_unique<StepRank>(
        graph_, CacheLimits{.max_requests = 4, .max_drafts = 1, .max_context = 512}, l2_bytes_, 7);
  }
  ModelConfig model_;
  StepGraph graph_;
  std::int64_t l2_bytes_ = 0;
  std::unique_ptr<StepRank> rank_;
};

// Embedding, mHC, quantiser, joint projection, norm, quantiser and query projection of the first
// layer, each fed with the host's own result of the one before. BF16 and E4M3 codes that flip at a
// rounding boundary are what the bound allows: a wrong row, scale or layout is an error of order 1.
TEST_F(StepGpu, ChainOfTheFirstLayerEqualsAHostComposition) {
  const StepCell cell{.requests = 3, .drafts = 0, .context = 300};
  rank_->configure(cell);
  for (const ScheduledOp& op : schedule_step(reference_graph(model_, 4, 0))) {
    rank_->launch(op, nullptr);
    if (op.id == OpId::kWqB) break;
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const StepRank::Activations& a = rank_->activations();
  const int m = cell.tokens();
  const auto rows = static_cast<std::size_t>(m);
  const auto hidden = static_cast<std::size_t>(model_.hidden);

  std::vector<std::uint16_t> table(static_cast<std::size_t>(rank_->weights().num_embedding_rows()) *
                                   hidden);
  ASSERT_EQ(cudaMemcpy(table.data(), rank_->weights().embedding(), table.size() * 2,
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  const auto ids = a.token_ids.download();
  std::vector<std::uint16_t> residual;
  for (std::size_t t = 0; t < rows; ++t) {
    const auto row = table.begin() + static_cast<std::ptrdiff_t>(ids[t]) * model_.hidden;
    for (int s = 0; s < model_.hc_streams; ++s)
      residual.insert(residual.end(), row, row + model_.hidden);
  }
  EXPECT_EQ(rank_->residual(), residual);

  const MhcWeights& mhc = rank_->weights().mhc(OpId::kMhcPre, 0);
  const auto fn = mhc.fn.download();
  const auto scale = mhc.scale.download();
  const auto base = mhc.base.download();
  const auto norm = a.norm_weight.download();
  const auto input =
      to_bf16(kernels::mhc_pre_reference({.num_tokens = m,
                                          .hidden = model_.hidden,
                                          .num_iterations = model_.sinkhorn_iterations,
                                          .residual = residual.data(),
                                          .fn = fn.data(),
                                          .scale = scale.data(),
                                          .base = base.data(),
                                          .norm_weight = norm.data()})
                  .out);
  EXPECT_LT(relative_error(a.input.download(), input), 0.005);
  const int joint = model_.q_lora + model_.head_dim;
  const auto qkv = project(input, m, joint, model_.hidden, rank_->weights().fp8(OpId::kWqkvA, 0));
  EXPECT_LT(relative_error(a.qkv.download(), qkv), 0.02);
  const auto q_low = to_bf16(kernels::rms_norm_reference(
      {.num_rows = m, .dim = model_.q_lora, .in = qkv.data(), .weight = norm.data()}));
  EXPECT_LT(relative_error(a.q_low.download(), q_low), 0.02);
  const int heads = model_.num_heads / 4;
  const auto query = project(q_low, m, heads * model_.head_dim, model_.q_lora,
                             rank_->weights().fp8(OpId::kWqB, 0));
  EXPECT_LT(relative_error(a.query.download(), query), 0.03);
}

TEST_F(StepGpu, EagerGraphAndSideStreamsLeaveTheSameBitsAndNothingInfinite) {
  const Nvml nvml(pci_bus_id());
  for (const bool side : {false, true}) {
    for (const int drafts : {0, 1}) {
      const StepCell cell{.requests = 4, .drafts = drafts, .context = 512};
      const StepMeasurement step =
          measure_step(*rank_, schedule_step(reference_graph(model_, 4, drafts)), cell,
                       {.side_streams = side,
                        .stopping = {.min_samples = 3,
                                     .max_samples = 5,
                                     .relative_half_width = 0.1,
                                     .max_total_seconds = 0.1}},
                       nvml);
      EXPECT_TRUE(step.eager_equals_graph);
      EXPECT_EQ(step.not_finite, "");
      EXPECT_GT(step.graph.summary.median_seconds, 0.0);
      // By construction; a launch lost or counted twice would show.
      double sum = 0.0;
      for (const OpInStep& op : step.ops) sum += op.seconds;
      if (!side) {
        EXPECT_NEAR(sum, step.graph.summary.median_seconds, 0.1 * sum);
      }
    }
  }
}

TEST_F(StepGpu, AnOpAloneTakesLessThanTheStepAndMoreThanNothing) {
  const Nvml nvml(pci_bus_id());
  const auto schedule = schedule_step(reference_graph(model_, 4, 1));
  const StepCell cell{.requests = 4, .drafts = 0, .context = 512};
  const auto experts = measure_op(*rank_, schedule, OpId::kRoutedExperts, cell, l2_bytes_, nvml);
  ASSERT_TRUE(experts.has_value());
  EXPECT_EQ(experts->executions, 3);
  EXPECT_GT(experts->seconds(), 1e-6);
  EXPECT_LT(experts->seconds(), 1e-3);
  EXPECT_FALSE(measure_op(*rank_, schedule, OpId::kAllReduce, cell, l2_bytes_, nvml).has_value());
}

}  // namespace
}  // namespace fulcrum::replay
