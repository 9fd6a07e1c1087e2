#include "model/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/predict.h"
#include "model/validate.h"
#include "tests/model/test_support.h"

namespace fulcrum {
namespace {

Measured rate(double tokens_per_second, double concurrency) {
  Measured m;
  m.result.output_tokens_per_second = tokens_per_second;
  m.result.concurrency = concurrency;
  return m;
}

bool has(const CheckReport& report, CheckVerdict verdict, const std::string& rule) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& f) {
    return f.verdict == verdict && f.rule.starts_with(rule);
  });
}

// campaign.md: 23 tok/s at C = 16 on the stock server; the model says 23 to 34.
TEST(Check, TheCampaignsTwentyThreeTokensAreNotImpossible) {
  const CheckReport report = check(test::deployment("campaign-stock"), rate(23, 16));
  EXPECT_LE(report.verdict, CheckVerdict::kCannotTell);
}

// One token of a TP4 rank reads about 4.1 GB (wo_a in BF16): 2.6 ms at 1597 GB/s, 390 tok/s.
TEST(Check, OneRequestCannotExceedTheRateAtWhichItsWeightsAreRead) {
  const Deployment deployment = test::deployment("campaign-stock");
  const double roof = 1.0 / least_step_seconds(deployment, 1.0);
  EXPECT_GT(roof, 350.0);
  EXPECT_LT(roof, 430.0);
  EXPECT_TRUE(has(check(deployment, rate(roof * 1.05, 1)), CheckVerdict::kImpossible, "roof"));
  EXPECT_FALSE(has(check(deployment, rate(roof * 0.95, 1)), CheckVerdict::kImpossible, "roof"));
}

// campaign.md: 1000 tok/s was declared out of reach; other kernels on the same cards pass it.
TEST(Check, AThousandTokensAreALimitOfTheKernelSetAndNotOfTheCards) {
  const CheckReport report = check(test::deployment("campaign-stock"), rate(1000, 16));
  EXPECT_EQ(report.verdict, CheckVerdict::kImplausible);
  EXPECT_FALSE(has(report, CheckVerdict::kImpossible, ""));
  EXPECT_NE(report.findings.front().text.find("sglang-2026-06-sm120"), std::string::npos);
}

TEST(Check, TheModelsOwnPredictionIsPlausibleEverywhere) {
  for (const char* name : {"campaign-stock", "campaign-a", "campaign-b", "b12x-tp4"}) {
    const Deployment deployment = test::deployment(name);
    for (const double concurrency : {1.0, 4.0, 16.0}) {
      const Throughput t = closed_loop_throughput(deployment, concurrency);
      Measured m = rate(t.output_tokens_per_second, concurrency);
      m.result.tpot.mean_seconds = t.tpot_seconds;
      m.step_seconds = t.step_seconds;
      EXPECT_EQ(check(deployment, m).verdict, CheckVerdict::kPlausible) << name << concurrency;
    }
  }
}

TEST(Check, WithoutALoadItCannotTell) {
  Measured m;
  m.result.output_tokens_per_second = 23;
  EXPECT_EQ(check(test::deployment("campaign-stock"), m).verdict, CheckVerdict::kCannotTell);
}

TEST(Check, AnAcceptLengthBeyondTheDraftsIsImpossible) {
  Measured m = rate(10, 1);
  m.result.accept_length = 2.2;  // the scenario drafts one token
  EXPECT_TRUE(
      has(check(test::deployment("campaign-b"), m), CheckVerdict::kImpossible, "acceptance bound"));
  m.result.accept_length = 1.87;
  EXPECT_FALSE(has(check(test::deployment("campaign-b"), m), CheckVerdict::kImpossible, ""));
}

LatencySummary latency(double mean, double p50, double p99) {
  LatencySummary summary;
  summary.mean_seconds = mean;
  summary.p50_seconds = p50;
  summary.p99_seconds = p99;
  return summary;
}

struct Contradiction {
  const char* rule;
  void (*make)(ServingResult&);
};

TEST(CheckArithmetic, FindsEachContradictionAndAcceptsTheSoundRun) {
  // Sound: 8 in flight, 100 tok/s, 100 tokens a request: one request/s, 8 s each.
  ServingResult sound;
  sound.concurrency = 8;
  sound.output_tokens_per_second = 100;
  sound.output_tokens_per_request = 100;
  sound.requests_per_second = 1.0;
  sound.duration_seconds = 50;
  sound.output_tokens = 5000;
  sound.total_tokens_per_second = 300;
  sound.ttft = latency(0.5, 0.4, 0.9);
  sound.tpot = latency(0.0757, 0.075, 0.09);
  sound.end_to_end = latency(8.0, 8.0, 9.0);
  EXPECT_TRUE(check_arithmetic(sound).empty());

  const Contradiction contradictions[] = {
      {"percentile order", [](ServingResult& r) { r.ttft.p99_seconds = 0.3; }},
      {"mean and median",
       [](ServingResult& r) {
         r.tpot.std_seconds = 0.001;
         r.tpot.mean_seconds = 0.079;
       }},
      {"tokens and duration", [](ServingResult& r) { r.output_tokens = 9000; }},
      {"total and output rate", [](ServingResult& r) { r.total_tokens_per_second = 90; }},
      {"first token after the last", [](ServingResult& r) { r.ttft.mean_seconds = 9.0; }},
      {"Little's law", [](ServingResult& r) { r.end_to_end.mean_seconds = 12.0; }},
      {"TPOT against tok/s", [](ServingResult& r) { r.tpot = latency(0.2, 0.2, 0.3); }},
  };
  for (const Contradiction& one : contradictions) {
    ServingResult broken = sound;
    one.make(broken);
    const std::vector<Finding> findings = check_arithmetic(broken);
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [&](const Finding& f) {
      return f.rule == one.rule && f.verdict == CheckVerdict::kImpossible;
    })) << one.rule;
  }
}

TEST(CheckPair, MtpOfTheCampaignAtSixteenIsNotComparable) {
  const Deployment a = test::deployment("campaign-a");
  const Deployment b = test::deployment("campaign-b");
  const Measured x = rate(23, 16);
  const Measured y = rate(23.2, 16);
  const CheckReport report = check_pair({a, x}, {b, y});
  EXPECT_EQ(report.verdict, CheckVerdict::kNotComparable);
  EXPECT_TRUE(has(report, CheckVerdict::kNotComparable, "effective batch"));
}

TEST(CheckPair, ADifferenceBelowNoiseSaysHowManyRepeatsItNeeds) {
  const Deployment a = test::deployment("campaign-a");
  const CheckReport report = check_pair({a, rate(23, 8)}, {a, rate(23.2, 8)});
  EXPECT_TRUE(has(report, CheckVerdict::kCannotTell, "run-to-run noise"));
  EXPECT_FALSE(has(report, CheckVerdict::kNotComparable, ""));
}

TEST(CheckPair, ConditionsThatDifferAreNamed) {
  const Deployment a = test::deployment("campaign-a");
  Measured x = rate(20, 8);
  Measured y = rate(30, 8);
  x.result.num_prompts = 32;
  y.result.num_prompts = 64;
  x.result.engine_version = "0.5.13";
  y.result.engine_version = "0.5.16";
  y.result.concurrency = 16;
  const CheckReport report = check_pair({a, x}, {a, y});
  EXPECT_EQ(report.verdict, CheckVerdict::kNotComparable);
  EXPECT_GE(std::count_if(report.findings.begin(), report.findings.end(),
                          [](const Finding& f) { return f.rule == "same conditions"; }),
            3);
}

// The promise of four to five times from tuned FP8 configurations: FP8 is 6 % of the step.
TEST(CheckClaim, WhatIsAboveTheCeilingIsImpossible) {
  LeverResult lever;
  lever.name = "fp8_configs";
  lever.gain_ratio = log_normal_interval(1.03, 0.01);
  lever.ceiling_ratio = 1.064;
  EXPECT_EQ(check_claim(lever, 4.0).verdict, CheckVerdict::kImpossible);
  EXPECT_EQ(check_claim(lever, 1.06).verdict, CheckVerdict::kImplausible);
  EXPECT_EQ(check_claim(lever, 1.03).verdict, CheckVerdict::kPlausible);
}

}  // namespace
}  // namespace fulcrum
