// A public panel of verify steps under a block draft: shape over concurrency with two numbers.
//
// ormandj/sglang-deepseek-v4-flash-sm120, bench/results/sglang-v0.8.1-rc.1-publication-summary.json
// (2026-08-21): 2x RTX PRO 6000 Max-Q, TP2, DSpark block 5 (6 tokens verified a request), mean
// context 18 944, engine forwards per second by server counters.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "model/price.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

constexpr std::size_t kPoints = 6;
constexpr std::array<double, kPoints> kConcurrency{1, 2, 4, 8, 16, 32};
constexpr std::array<double, kPoints> kForwardsPerSecond{64.51896904, 48.28456835, 34.42201273,
                                                         23.25052812, 17.90899533, 13.31321572};

using Series = std::array<double, kPoints>;

/// The verify step's two parts; drafts left out: the model has no block draft of its own.
struct Parts {
  double experts_seconds = 0.0;
  double rest_seconds = 0.0;
  double attention_seconds = 0.0;  ///< of the rest
};

Parts verify_parts(const StepPricer& pricer, double concurrency) {
  StepState state;
  state.requests = concurrency;
  state.tokens_per_request = 6.0;
  state.context = 18944.0;
  state.logits_rows = state.tokens();
  StepPrice price;
  pricer.price(state, price);
  Parts parts;
  for (std::size_t i = 0; i < price.ops.size(); ++i) {
    const OpFamily family = pricer.graph().ops[i].family;
    if (family == OpFamily::kDraft) continue;
    (family == OpFamily::kMoe ? parts.experts_seconds : parts.rest_seconds) += price.ops[i].seconds;
    if (family == OpFamily::kAttention) parts.attention_seconds += price.ops[i].seconds;
  }
  return parts;
}

Series measured_seconds() {
  Series y{};
  for (std::size_t i = 0; i < kPoints; ++i) y[i] = 1.0 / kForwardsPerSecond[i];
  return y;
}

struct Fit {
  double a = 0.0;
  double b = 0.0;
};

/// Least squares of relative residuals of y = a u + b v, one point left out (kPoints: none).
Fit fit(const Series& u, const Series& v, const Series& y, std::size_t left_out = kPoints) {
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    if (i == left_out) continue;
    const double p = u[i] / y[i];
    const double q = v[i] / y[i];
    uu += p * p;
    uv += p * q;
    vv += q * q;
    u1 += p;
    v1 += q;
  }
  const double det = uu * vv - uv * uv;
  return {(u1 * vv - v1 * uv) / det, (v1 * uu - u1 * uv) / det};
}

class DsparkPanel : public testing::Test {
 protected:
  DsparkPanel() {
    const StepPricer pricer(test::deployment("b12x-tp4", {{"/hardware", "rtx-pro-6000-maxq"},
                                                          {"/num_gpus", 2},
                                                          {"/tensor_parallel", 2},
                                                          {"/workload/input_tokens", 16384},
                                                          {"/workload/output_tokens", 4096}}));
    for (std::size_t i = 0; i < kPoints; ++i) {
      const Parts parts = verify_parts(pricer, kConcurrency[i]);
      experts_[i] = parts.experts_seconds;
      rest_[i] = parts.rest_seconds;
      attention_[i] = parts.attention_seconds;
    }
  }
  Series experts_{};
  Series rest_{};
  Series attention_{};
  const Series measured_ = measured_seconds();
};

// The two numbers: how much faster than the August kernels its experts are, and all the rest.
TEST_F(DsparkPanel, ShapeOverConcurrencyHoldsWithinFivePercentWithTwoNumbers) {
  const Fit f = fit(experts_, rest_, measured_);
  EXPECT_GT(f.a, 0.6);
  EXPECT_LT(f.a, 1.1);
  EXPECT_GT(f.b, 0.8);
  EXPECT_LT(f.b, 1.2);
  const double at_one = f.a * experts_[0] + f.b * rest_[0];
  double worst = 0.0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double shape = (f.a * experts_[i] + f.b * rest_[i]) / at_one;
    const double error = shape / (measured_[i] / measured_[0]) - 1.0;
    worst = std::max(worst, std::abs(error));
    EXPECT_LE(std::abs(error), 0.05) << "C=" << kConcurrency[i];
  }
  std::printf("experts x %.3f, rest x %.3f; worst shape error %.1f %%\n", f.a, f.b, 100 * worst);
}

TEST_F(DsparkPanel, EachPointIsForetoldByTheOthersWithinTenPercent) {
  double worst = 0.0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const Fit f = fit(experts_, rest_, measured_, i);
    worst = std::max(worst, std::abs((f.a * experts_[i] + f.b * rest_[i]) / measured_[i] - 1.0));
  }
  std::printf("worst left-out error %.1f %%\n", 100 * worst);
  EXPECT_LE(worst, 0.10);
}

TEST_F(DsparkPanel, MostOfTheSaturationIsDistinctExperts) {
  const Fit f = fit(experts_, rest_, measured_);
  const double grown = measured_.back() - measured_.front();
  const double by_experts = f.a * (experts_.back() - experts_.front()) / grown;
  const double by_attention = f.b * (attention_.back() - attention_.front()) / grown;
  std::printf("growth from C=1 to 32: experts %.0f %%, attention %.0f %%\n", 100 * by_experts,
              100 * by_attention);
  EXPECT_GT(by_experts, 0.5);
  EXPECT_GT(by_attention, 0.05);
}

TEST_F(DsparkPanel, AStraightLineInConcurrencyMissesByFifteenPercentOrMore) {
  Series ones{};
  ones.fill(1.0);
  const Fit f = fit(ones, kConcurrency, measured_);
  double worst = 0.0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    worst = std::max(worst, std::abs((f.a + f.b * kConcurrency[i]) / measured_[i] - 1.0));
  }
  EXPECT_GE(worst, 0.15);
}

}  // namespace
}  // namespace fulcrum
