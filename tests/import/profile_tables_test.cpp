// A profile of two ranks as tables that `fulcrum calibrate` reads, and beside a prediction.
#include "calibrate/io/import/profile_tables.h"

#include <gtest/gtest.h>

#include "calibrate/io/import/chrome_trace.h"
#include "calibrate/io/load_trace_rules.h"
#include "calibrate/io/read_table.h"
#include "calibrate/trace/compare.h"
#include "model/io/load_scenario.h"
#include "model/price.h"

namespace fulcrum::calibrate::io {
namespace {

class TwoRanks : public testing::Test {
 protected:
  void SetUp() override {
    const TraceRules rules = shipped_trace_rules();
    for (const char* rank : {"0", "1"}) {
      auto source = fulcrum::io::ByteSource::from_file(
          std::string(FULCRUM_SOURCE_DIR "/tests/import/fixtures/torch_2_9_rank") + rank +
          ".json.gz");
      ranks_.push_back(*profile_device(read_chrome_trace(source), 0, rules));
    }
    auto document = fulcrum::io::read_scenario("b12x-tp4");
    for (const char* pointer : {"/tensor_parallel", "/num_gpus"}) {
      fulcrum::io::set_value(document, pointer, nlohmann::json(2));
    }
    fulcrum::io::set_value(document, "/speculation", nlohmann::json{{"method", "none"}});
    fulcrum::io::set_value(document, "/workload/concurrency", nlohmann::json::array({1}));
    document.value["workload"].erase("num_prompts");
    std::vector<std::string> warnings;
    deployment_ = fulcrum::io::resolve_scenario(document, warnings);
  }
  std::vector<ImportedTable> tables() {
    const StepPricer pricer(deployment_);
    return profile_tables(ranks_, pricer.graph(), StepState{.context = 1024.0},
                          {.device = "rtx-pro-6000-server", .engine = "vllm", .ranks = 2});
  }
  std::vector<StepProfile> ranks_;
  Deployment deployment_;
};

/// First row of a table; empty where there is none.
std::vector<std::string> row_of(const std::vector<ImportedTable>& tables, const std::string& name,
                                std::size_t row = 0) {
  for (const ImportedTable& table : tables) {
    if (table.table == name && row < table.rows.size()) return table.rows[row];
  }
  return {};
}

TEST_F(TwoRanks, GiveTheShapesOfTheScenarioAndTheTimesOfTheTrace) {
  const auto all = tables();
  // Two launches of 22 and 20 us in each of 43 layers; TP2 halves the experts' width of 2048.
  EXPECT_EQ(row_of(all, "moe_perf"),
            (std::vector<std::string>{"moe", "void_marlin_moe_wna16__Marlin", "w4a16_mxfp4", "1",
                                      "4096", "1024", "6", "256", "1", "1", "uniform", "0.042"}));
  EXPECT_EQ(row_of(all, "mhc_module_perf"),
            (std::vector<std::string>{"pre", "mhc_pre_big_fuse_with_norm_tilelang_kernel", "1", "1",
                                      "4", "4096", "20", "0.0045"}));
}

// Rank 0 takes 6.6 us, rank 1 9.9 us: the difference is waiting.
TEST_F(TwoRanks, ChargeACollectiveWithoutTheWaitForTheLastRank) {
  const auto row = row_of(tables(), "custom_allreduce_perf");
  ASSERT_EQ(row.size(), 6U);
  EXPECT_EQ(row[3], "2");
  EXPECT_EQ(row[4], "4096");  // elements of one token
  EXPECT_NEAR(std::stod(row[5]), 0.0066, 1e-6);
}

TEST_F(TwoRanks, AreReadByCalibrate) {
  for (const ImportedTable& table : tables()) {
    SCOPED_TRACE(table.table);
    const MeasurementTable read = parse_table(csv_text(table), file_name(table));
    EXPECT_TRUE(read.quarantined.empty());
    EXPECT_EQ(read.num_rows, table.rows.size());
    EXPECT_EQ(read.device, "rtx_pro_6000_server");
  }
}

TEST_F(TwoRanks, CompareWithAPredictionOpByOp) {
  const PredictionPoint point = predict(deployment_).points.at(0);
  double measured = 0.0;
  double predicted = 0.0;
  for (const OpComparison& c : compare(ranks_[0], point.breakdown)) {
    measured += c.measured_seconds.value_or(0.0);
    predicted += c.predicted_seconds.value_or(0.0);
    if (c.op == "fp8_gemm") {
      EXPECT_TRUE(c.measured_seconds && c.predicted_seconds);
    }
    EXPECT_NE(c.op, "wq_b") << "its slot is measured, so it belongs there";
  }
  EXPECT_NEAR(measured, ranks_[0].step_seconds, 1e-9);
  EXPECT_NEAR(predicted, point.step_seconds.p50, 1e-9);
}

}  // namespace
}  // namespace fulcrum::calibrate::io
