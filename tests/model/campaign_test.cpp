// The campaign's published figures against predictions that no number was tuned to. Bounds are
// those set for the project before its first prediction; source: the campaign's record.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/io/load_lever.h"
#include "model/levers.h"
#include "model/predict.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

double share_of(const PredictionPoint& point, OpFamily family) {
  double share = 0.0;
  for (const BreakdownLine& line : point.breakdown) {
    if (line.family == family) share += line.share_fraction;
  }
  return share;
}

PredictionPoint stock_at(double concurrency) {
  Deployment deployment = test::deployment("campaign-stock");
  deployment.workload.concurrency = {concurrency};
  return predict(deployment).points.at(0);
}

LeverResult lever_on_stock(const std::string& name, double concurrency) {
  const io::ScenarioDocument scenario =
      io::read_scenario(test::data_path("scenarios/campaign-stock.json"));
  const io::LeverDocument lever = io::load_lever(test::data_path("levers/" + name + ".json"));
  std::vector<std::string> warnings;
  return evaluate_lever(lever.lever, io::resolve_scenario(scenario, warnings),
                        io::resolve_scenario(io::pull(scenario, lever), warnings), concurrency);
}

TEST(Campaign, StockServerGives8To14TokensPerSecondAtC1) {
  const double tokens = stock_at(1).output_tokens_per_second.p50;  // 10 measured
  EXPECT_GE(tokens, 8.0);
  EXPECT_LE(tokens, 14.0);
}

TEST(Campaign, StockServerGives18To32TokensPerSecondAtC16) {
  const double tokens = stock_at(16).output_tokens_per_second.p50;  // 23 measured
  EXPECT_GE(tokens, 18.0);
  EXPECT_LE(tokens, 32.0);
}

TEST(Campaign, SparseAttentionTakes50To80PercentOfTheStep) {
  const double share = share_of(stock_at(1), OpFamily::kAttention);  // 63 % measured
  EXPECT_GE(share, 0.50);
  EXPECT_LE(share, 0.80);
}

TEST(Campaign, BlockGemmTakes3To9PercentOfTheStep) {
  const double share = share_of(stock_at(1), OpFamily::kGemmFp8);  // 6 % measured
  EXPECT_GE(share, 0.03);
  EXPECT_LE(share, 0.09);
}

TEST(Campaign, CollectivesTake1To5PercentOfTheStep) {
  const double share = share_of(stock_at(1), OpFamily::kCollective);  // 2 % measured
  EXPECT_GE(share, 0.01);
  EXPECT_LE(share, 0.05);
}

TEST(Campaign, TunedBlockGemmConfigsGiveAtMost7Percent) {
  for (double concurrency : {1.0, 16.0}) {
    const LeverResult result = lever_on_stock("fp8_configs", concurrency);
    EXPECT_LE(result.gain_ratio.p50, 1.07);
    EXPECT_GE(result.gain_ratio.p50, 1.0);
    EXPECT_LT(result.ceiling_ratio, 1.10);
  }
}

TEST(Campaign, NcclLowLatencyGivesUnder3Percent) {
  for (double concurrency : {1.0, 16.0}) {
    EXPECT_LT(lever_on_stock("nccl_ll", concurrency).gain_ratio.p50, 1.03);
  }
}

TEST(Campaign, OneMtpTokenGives30To60PercentAtC1) {
  const double gain = lever_on_stock("mtp1", 1).gain_ratio.p50;  // +47 % measured
  EXPECT_GE(gain, 1.30);
  EXPECT_LE(gain, 1.60);
}

TEST(Campaign, OneMtpTokenGivesUnder15PercentAtC16) {
  EXPECT_LT(lever_on_stock("mtp1", 16).gain_ratio.p50, 1.15);  // no gain measured
}

// Of what the campaign had on its list: changes that leave the attention's own work, the engine
// and the cards as they are.
bool leaves_attention_alone(const std::string& name) {
  const Lever lever = io::load_lever(test::data_path("levers/" + name + ".json")).lever;
  const std::vector<OpId>& freed = lever.ceiling.free_ops;
  return !lever.ceiling.at_roofline &&
         std::find(freed.begin(), freed.end(), OpId::kAttentionHca) == freed.end();
}

TEST(Campaign, TheAttentionKernelIsTheFirstLeverByFar) {
  for (double concurrency : {1.0, 16.0}) {
    const double attention = lever_on_stock("split_k_attention", concurrency).gain_ratio.p50;
    for (const std::string& name : io::lever_names()) {
      if (!leaves_attention_alone(name)) continue;
      const double other = lever_on_stock(name, concurrency).gain_ratio.p50;
      EXPECT_GT(attention - 1.0, 1.5 * (other - 1.0)) << name << " at C=" << concurrency;
    }
  }
}

TEST(Campaign, EveryGainStaysBelowItsCeiling) {
  for (double concurrency : {1.0, 16.0}) {
    for (const std::string& name : io::lever_names()) {
      const LeverResult result = lever_on_stock(name, concurrency);
      EXPECT_LE(result.gain_ratio.p50, result.ceiling_ratio * 1.001)
          << name << " at C=" << concurrency;
    }
  }
}

}  // namespace
}  // namespace fulcrum
