#include "model/serving.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/speculation.h"

namespace fulcrum {
namespace {

TEST(AcceptLength, OfPositionsIsOnePlusTheSumOfReaches) {
  // MT-Bench K=2: 0.844 and 0.516 reached (conditional 0.516 / 0.844).
  const std::vector<double> conditional{0.844, 0.516 / 0.844};
  EXPECT_NEAR(accept_length(conditional), 2.36, 1e-9);
  EXPECT_DOUBLE_EQ(accept_length({}), 1.0);
  EXPECT_DOUBLE_EQ(accept_length(std::vector<double>{0.0, 1.0}), 1.0);
  EXPECT_DOUBLE_EQ(accept_length(std::vector<double>{1.0, 1.0}), 3.0);
}

TEST(AcceptedDrafts, VarianceOfOneDraftIsBernoulli) {
  EXPECT_DOUBLE_EQ(accepted_drafts_variance(std::vector<double>{0.3}), 0.3 * 0.7);
  EXPECT_DOUBLE_EQ(accepted_drafts_variance(std::vector<double>{1.0, 1.0}), 0.0);
}

TEST(ClosedLoop, OneRequestTakesPrefillPlusItsSteps) {
  const ClosedLoopResult r = closed_loop({.concurrency = 1,
                                          .batch = 1,
                                          .output_tokens = 101,
                                          .step_seconds = 0.1,
                                          .prefill_seconds = 2.0});
  // 100 steps of 0.1 s after a prefill of 2 s: 12 s for 101 tokens.
  EXPECT_NEAR(r.end_to_end_seconds, 12.0, 1e-12);
  EXPECT_NEAR(r.output_tokens_per_second, 101.0 / 12.0, 1e-12);
  EXPECT_NEAR(r.tpot_seconds, 0.1, 1e-12);
  EXPECT_NEAR(r.ttft_seconds, 2.0, 1e-12);
}

TEST(ClosedLoop, LittlesLawHolds) {
  for (double concurrency : {1.0, 4.0, 16.0, 64.0}) {
    for (double batch : {1.0, 3.0, concurrency}) {
      if (batch > concurrency) continue;
      const ClosedLoopResult r = closed_loop({.concurrency = concurrency,
                                              .batch = batch,
                                              .output_tokens = 256,
                                              .accept_length = 1.9,
                                              .step_seconds = 0.05,
                                              .prefill_seconds = 0.3});
      EXPECT_NEAR(r.requests_per_second * r.end_to_end_seconds, concurrency, 1e-9);
      EXPECT_NEAR(r.ttft_seconds + 255.0 * r.tpot_seconds, r.end_to_end_seconds, 1e-9);
    }
  }
}

TEST(ClosedLoop, PrefillOfOthersLengthensTheTimePerToken) {
  ClosedLoopInput in{.concurrency = 8, .batch = 8, .output_tokens = 100, .step_seconds = 0.05};
  const double alone = closed_loop(in).tpot_seconds;
  in.prefill_seconds = 0.5;
  EXPECT_GT(closed_loop(in).tpot_seconds, alone);
}

TEST(DecodeSteps, OneOutputTokenNeedsNoDecodeStep) {
  EXPECT_EQ(decode_steps(1.0, 1.0), 0.0);
  EXPECT_EQ(decode_steps(1.0, 2.0), 0.0);
  EXPECT_EQ(decode_steps(11.0, 1.0), 10.0);
}

}  // namespace
}  // namespace fulcrum
