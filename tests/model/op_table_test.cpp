#include "model/op_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fulcrum {
namespace {

// Times 10 us at 1 token and 40 us at 3: log(1 + x) runs from log 2 to log 4.
OpTable two_points() {
  OpTable table;
  table.op = "wq_b";
  table.knots = {{{1.0, 3.0}, {100.0}, {0.0}}};
  table.seconds = {1e-5, 4e-5};
  return table;
}
GemmLaunch at(double m) { return {.m = m, .n = 10.0, .k = 10.0}; }

TEST(OpTable, GivesBackItsPoints) {
  EXPECT_DOUBLE_EQ(op_table_seconds(two_points(), at(1.0)), 1e-5);
  EXPECT_DOUBLE_EQ(op_table_seconds(two_points(), at(3.0)), 4e-5);
}

// Half way between log 2 and log 4 lies 1 + x = sqrt 8; half way between 10 and 40 us lie 20.
TEST(OpTable, IsLinearInTheLogarithmsBetweenThem) {
  EXPECT_NEAR(op_table_seconds(two_points(), at(std::sqrt(8.0) - 1.0)), 2e-5, 1e-12);
}

// The slope is log 4 / log 2 = 2: more than in proportion, so it is held at 1 beyond the end.
TEST(OpTable, GrowsAtMostInProportionBeyondItsEnd) {
  EXPECT_NEAR(op_table_seconds(two_points(), at(7.0)), 8e-5, 1e-12);
  EXPECT_NEAR(op_table_seconds(two_points(), at(0.0)), 0.5e-5, 1e-12);
}

TEST(OpTable, NeverGetsFasterWithMoreWorkBeyondItsEnd) {
  OpTable falling = two_points();
  falling.seconds = {4e-5, 1e-5};
  EXPECT_DOUBLE_EQ(op_table_seconds(falling, at(1000.0)), 1e-5);
}

TEST(OpTable, TakesTheContextOfAttentionAndScanAsItsThirdAxis) {
  OpTable table;
  table.knots = {{{1.0}, {16.0}, {8.0, 512.0}}};
  table.seconds = {1e-5, 3e-5};
  AttentionLaunch launch;
  launch.tokens = 1.0;
  launch.heads = 16.0;
  launch.selected_rows = 512.0;
  EXPECT_NEAR(op_table_seconds(table, launch), 3e-5, 1e-12);
}

TEST(OpTable, StaysPositiveAndFiniteEverywhere) {
  for (double m = 1.0; m < 1e7; m *= 1.9) {
    const double seconds = op_table_seconds(two_points(), at(m));
    EXPECT_GT(seconds, 0.0);
    EXPECT_TRUE(std::isfinite(seconds));
  }
}

}  // namespace
}  // namespace fulcrum
