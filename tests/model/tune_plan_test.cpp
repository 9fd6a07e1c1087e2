#include "model/tune_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "model/errors.h"
#include "model/io/load_lever.h"
#include "model/io/tuned_config.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

namespace fs = std::filesystem;

TunePlan plan_of_stock() {
  std::vector<std::string> warnings;
  const io::ScenarioDocument scenario =
      io::read_scenario(test::data_path("scenarios/campaign-stock.json"));
  return tune_plan(
      io::resolve_scenario(scenario, warnings),
      io::resolve_scenario(io::pull(scenario, io::load_lever("fp8_configs")), warnings));
}

// Stages 4 x block_m 5 x block_k 2 x block_n 4 x warps 2 x groups 4 = 1280, the campaign's figure.
TEST(TunePlan, TriesTheCandidatesOfTheTuners) {
  const std::vector<TritonConfig> all = tuner_candidates();
  EXPECT_EQ(all.size(), 1280u);
  EXPECT_EQ(tuner_batch_sizes().size(), 18u);
  EXPECT_NE(std::find(all.begin(), all.end(), kDefaultTritonConfig), all.end());
}

TEST(TunePlan, PutsTheCampaignsTuningAt27MinutesAndItsGainBelowItsCeiling) {
  const TunePlan plan = plan_of_stock();
  EXPECT_NEAR(plan.full_minutes, 27.0, 1e-9);
  ASSERT_EQ(plan.pairs.size(), 15u);  // five shapes at C = 1, 8, 16
  EXPECT_GE(plan.gain_all_ratio.p05, 1.0);
  EXPECT_LE(plan.gain_all_ratio.p95, plan.ceiling_all_ratio);
  EXPECT_LT(plan.ceiling_all_ratio, 1.10);  // FP8 GEMM was 6 % of the campaign's step
  EXPECT_LT(plan.cut_minutes, 0.1 * plan.full_minutes);
  for (const TunePair& pair : plan.pairs) {
    EXPECT_GE(pair.gain_ratio.p05, 1.0);
    EXPECT_LE(pair.gain_ratio.p95, pair.ceiling_ratio);
    EXPECT_LE(pair.candidates.size(), 128u);
    EXPECT_GE(pair.candidates.size(), 1u);
    EXPECT_LE(pair.best_seconds, pair.now_seconds);
  }
}

// sm_120: 99 KiB a block. Five stages hold at least four tiles of (256 + 256) x 128 bytes = 256
// KiB.
TEST(TunePlan, DropsOnlyWhatCannotWin) {
  const Hardware hardware = test::deployment("campaign-stock").hardware;
  GemmLaunch launch;
  launch.m = 16;
  launch.n = 4096;
  launch.k = 2048;
  launch.weight_bits = 8;
  EXPECT_TRUE(why_hopeless({64, 128, 128, 1, 4, 3}, launch, hardware));  // 16 tokens, 64 rows
  EXPECT_TRUE(why_hopeless({16, 64, 128, 16, 4, 3}, launch, hardware));  // one row of tiles
  EXPECT_FALSE(why_hopeless({16, 64, 128, 1, 4, 3}, launch, hardware));
  launch.m = 4096;
  EXPECT_TRUE(why_hopeless({256, 256, 128, 1, 8, 5}, launch, hardware));  // shared memory
  EXPECT_TRUE(why_hopeless({256, 256, 64, 1, 4, 2}, launch, hardware));   // 512 accumulators
  EXPECT_FALSE(why_hopeless({64, 128, 128, 16, 4, 3}, launch, hardware));
}

TEST(TunePlan, LooksUpTheNearestTokenCountAsTheEnginesDo) {
  EXPECT_EQ(nearest_batch_size(tuner_batch_sizes(), 1), 1);
  EXPECT_EQ(nearest_batch_size(tuner_batch_sizes(), 20), 16);  // tie: the first
  EXPECT_EQ(nearest_batch_size(tuner_batch_sizes(), 21), 24);
  EXPECT_EQ(nearest_batch_size(tuner_batch_sizes(), 1e6), 4096);
}

TEST(TunePlan, RefusesADeploymentWithoutATritonGemm) {
  const Deployment native = test::deployment("b12x-tp4");
  EXPECT_THROW(tune_plan(native, native), std::invalid_argument);
}

class TunedFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = fs::path(testing::TempDir()) / name;
    std::ofstream(path) << text;
    return path.string();
  }
};

TEST_F(TunedFiles, AreReadAsWritten) {
  const TritonConfig config{16, 64, 128, 1, 4, 5};
  const std::string path = write(io::tuned_file_name(1024, 4096, "NVIDIA H200"),
                                 nlohmann::ordered_json{{"8", io::to_json(config)}}.dump());
  const io::TunedFile file = io::load_tuned_file(path);
  EXPECT_EQ(file.n, 1024);
  EXPECT_EQ(file.k, 4096);
  EXPECT_EQ(file.device, "NVIDIA_H200");
  ASSERT_EQ(file.by_batch_size.size(), 1u);
  EXPECT_EQ(file.by_batch_size.at(8), config);
}

TEST_F(TunedFiles, AreRefusedWithEveryFaultNamed) {
  for (const char* text :
       {"{}", "[]", R"({"x": {}})", R"({"8": 1})", R"({"8": {"BLOCK_SIZE_M": 0}})",
        R"({"8": {"BLOCK_SIZE_M": "16"}})", "{"}) {
    EXPECT_THROW(io::load_tuned_file(write(io::tuned_file_name(8, 8, "x"), text)), InputError)
        << text;
  }
  EXPECT_THROW(io::load_tuned_file(write("plain.json", "{}")), InputError);
}

}  // namespace
}  // namespace fulcrum
