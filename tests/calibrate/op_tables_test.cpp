#include "calibrate/op_tables.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "model/io/load_model.h"
#include "model/io/load_op_table.h"

namespace fulcrum::calibrate {
namespace {

ModelConfig flash() {
  return io::load_model(std::string(FULCRUM_SOURCE_DIR) + "/data/models/deepseek-v4-flash.json");
}
OpRecord record(const char* op, double requests, double seconds) {
  return {.op = op,
          .tensor_parallel = 4,
          .requests = requests,
          .context_tokens = 1024.0,
          .seconds = seconds};
}

TEST(OpTables, HoldOnePointPerLaunchAndAverageRepeats) {
  const auto tables = tabulate_ops(
      flash(), {record("wq_b", 1, 1e-6), record("wq_b", 1, 4e-6), record("wq_b", 16, 8e-6)});
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].table.knots[0], (std::vector<double>{1.0, 16.0}));
  ASSERT_EQ(tables[0].table.knots[1].size(), 1U);
  EXPECT_DOUBLE_EQ(tables[0].table.knots[1][0], 64.0 * 512.0 / 4.0 * 1024.0);  // n x k at TP4
  EXPECT_NEAR(tables[0].table.seconds[0], 2e-6, 1e-15);  // geometric mean of 1 and 4
  EXPECT_NEAR(tables[0].table.seconds[1], 8e-6, 1e-15);
}

TEST(OpTables, RefuseAGridWithHolesUnknownOpsAndImpossibleTimes) {
  OpRecord other = record("wq_b", 16, 1e-6);
  other.tensor_parallel = 2;
  EXPECT_THROW(tabulate_ops(flash(), {record("wq_b", 1, 1e-6), other}), std::invalid_argument);
  EXPECT_THROW(tabulate_ops(flash(), {record("nothing", 1, 1e-6)}), std::invalid_argument);
  EXPECT_THROW(tabulate_ops(flash(), {record("wq_b", 1, -1e-6)}), std::invalid_argument);
}

// Short executions differ by +-1 us, long ones by a factor e^+-0.1.
TEST(OpTables, TakeTheirErrorFromOpsInsideSteps) {
  auto tables = tabulate_ops(flash(), {record("wq_b", 1, 5e-6), record("routed_experts", 1, 1e-4)});
  set_discrepancy(flash(),
                  {record("wq_b", 1, 6e-6), record("wq_b", 1, 4e-6),
                   record("routed_experts", 1, 1e-4 * std::exp(0.1)),
                   record("routed_experts", 1, 1e-4 * std::exp(-0.1))},
                  tables);
  EXPECT_NEAR(tables[0].table.sigma_seconds, 1e-6, 1e-12);
  EXPECT_EQ(tables[0].table.log_sigma, 0.0);
  EXPECT_EQ(tables[1].table.sigma_seconds, 0.0);
  EXPECT_NEAR(tables[1].table.log_sigma, 0.1, 1e-9);
}

TEST(OpTables, AreShippedForTheH200WithEveryOpOfTheStep) {
  const auto shipped = io::load_op_tables(io::op_tables_path("h200-sxm"));
  EXPECT_EQ(shipped.hardware, "h200-sxm");
  for (const char* op :
       {"wq_b", "routed_experts", "attention_csa", "indexer_logits", "mtp_h_proj"}) {
    EXPECT_TRUE(shipped.tables.contains(op)) << op;
  }
}

}  // namespace
}  // namespace fulcrum::calibrate
