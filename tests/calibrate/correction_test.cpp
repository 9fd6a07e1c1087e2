#include "calibrate/correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "calibrate/score.h"
#include "calibrate/split.h"
#include "tests/calibrate/toy_family.h"

namespace fulcrum::calibrate {
namespace {

/// Rows whose times follow `truth(row)` in the log about the toy law.
template <class Truth>
std::vector<Record> bent_records(int num_groups, double row_sd, std::uint64_t seed, Truth truth) {
  std::vector<Record> records = toy::make_records(num_groups, 0.0, row_sd, seed);
  for (Record& record : records) {
    record.latency_seconds *= std::exp(truth(std::get<GemmRow>(record.shape)));
  }
  return records;
}

/// Bends by up to 10 % over octaves of n and m: no parameter of the toy law can follow it.
double wave(const GemmRow& row) {
  return 0.1 * std::sin(1.5 * std::log2(row.n)) * std::cos(0.5 * std::log2(row.m));
}

SeriesFit fit_toy(const std::vector<Record>& records) {
  return fit_series(toy::featured_family(), toy::key(), toy::device(), records, FitOptions{});
}

TEST(Correction, ASmoothMisfitOfTheLawIsLearnedAndHelpsShapesItHasNotSeen) {
  const SeriesFit fit = fit_toy(bent_records(300, 0.01, 1, wave));
  ASSERT_FALSE(fit.correction.empty());
  ASSERT_TRUE(fit.inside && fit.inside_law);
  EXPECT_GT(fit.inside_law->median_ape, 0.03);
  EXPECT_LT(fit.inside->median_ape, 0.4 * fit.inside_law->median_ape);
  EXPECT_NEAR(fit.inside->coverage_fraction, 0.9, 0.06);
  EXPECT_LT(fit.residual.scale, fit.law_residual.scale);
}

TEST(Correction, NoiseIsNotLearned) {
  // Errors that the rows of a shape share and its neighbours do not: nothing to carry over.
  const SeriesFit fit = fit_toy(toy::make_records(120, 0.1, 0.02, 3));
  ASSERT_TRUE(fit.inside.has_value());
  if (fit.inside_law) {
    EXPECT_LT(fit.inside->median_ape, 1.1 * fit.inside_law->median_ape);
  }
}

TEST(Correction, IsBoundedAndDiesAwayFromTheRows) {
  const SeriesFit fit =
      fit_toy(bent_records(200, 0.0, 5, [](const GemmRow& row) { return 4.0 * wave(row); }));
  ASSERT_FALSE(fit.correction.empty());
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::array<double, kNumGemmFeatures> x{12.0 * random.uniform(), 8.0 * random.uniform(),
                                                 8.0 * random.uniform()};
    const CorrectionAt at = evaluate(fit.correction, x);
    EXPECT_LE(std::abs(at.log_factor), kLogCorrectionBound);
    EXPECT_LE(at.nearness, 1.0);
  }
  // 2^30 rows of m: fifteen octave pairs from the nearest node.
  const CorrectionAt far = evaluate(fit.correction, std::array<double, 3>{20.0, 10.0, 10.0});
  EXPECT_LT(std::abs(far.log_factor), 1e-4);
  EXPECT_LT(far.nearness, 1e-4);
}

TEST(Correction, ValueIsTheWeightedSumOfBumps) {
  // One feature, nodes at 0 and 1, weights 0.1 and -0.05. At 0: 0.1 - 0.05 (1 + s) e^-s with
  // s = sqrt(3): bump(1) = 2.7320508 x 0.1769212 = 0.4833577.
  const LogCorrection correction{.num_features = 1, .nodes = {0.0, 1.0}, .weights = {0.1, -0.05}};
  const CorrectionAt at = evaluate(correction, std::array<double, 1>{0.0});
  EXPECT_NEAR(at.log_factor, 0.1 - 0.05 * 0.4833577, 1e-7);
  EXPECT_DOUBLE_EQ(at.nearness, 1.0);
}

TEST(Correction, DoesNotDependOnTheOrderOfRows) {
  std::vector<Record> records = bent_records(100, 0.01, 9, wave);
  const auto errors = [](const std::vector<Record>& rows) { return fit_toy(rows).inside->p90_ape; };
  const double forward = errors(records);
  std::reverse(records.begin(), records.end());
  EXPECT_NEAR(errors(records), forward, 0.1 * forward);
}

TEST(Correction, EqualRowsAndTooFewRowsCarryNone) {
  std::vector<Record> records(40, toy::make_records(1, 0.0, 0.0, 1).front());
  EXPECT_TRUE(fit_toy(records).correction.empty());
  EXPECT_TRUE(fit_toy(toy::make_records(1, 0.1, 0.1, 1)).correction.empty());
}

}  // namespace
}  // namespace fulcrum::calibrate
