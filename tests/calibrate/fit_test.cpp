#include "calibrate/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "calibrate/prior.h"
#include "calibrate/split.h"
#include "tests/calibrate/toy_family.h"

namespace fulcrum::calibrate {
namespace {

SeriesFit fit_toy(const std::vector<Record>& records) {
  return fit_series(toy::linear_family(), toy::key(), toy::device(), records, FitOptions{});
}

TEST(Fit, NoiselessRowsGiveThePlantedParametersBack) {
  const SeriesFit fit = fit_toy(toy::make_records(60, 0.0, 0.0, 1));
  EXPECT_TRUE(fit.converged);
  EXPECT_NEAR(fit.parameters[0].value / toy::kFloorSeconds, 1.0, 1e-4);
  EXPECT_NEAR(fit.parameters[1].value / toy::kRate, 1.0, 1e-4);
  ASSERT_TRUE(fit.inside && fit.outside);
  EXPECT_LT(fit.inside->p90_ape, 1e-3);
  EXPECT_LT(fit.outside->p90_ape, 1e-3);
  EXPECT_TRUE(fit.warnings.empty());
}

TEST(Fit, StandardErrorsCoverPlantedParametersInWorldsWhereShapesShareAnError) {
  int floor_covered = 0;
  int rate_covered = 0;
  constexpr int kWorlds = 200;
  for (int world = 0; world < kWorlds; ++world) {
    const auto records = toy::make_records(50, 0.05, 0.01, static_cast<std::uint64_t>(world) + 100);
    const auto law = toy::linear_family().bind(toy::key(), toy::device(), records);
    std::vector<std::uint32_t> all(records.size());
    std::iota(all.begin(), all.end(), 0);
    const SeriesFit fit = fit_rows(toy::linear_family(), toy::key(), toy::device(), records, law,
                                   all, FitOptions{}, std::vector<double>{1e-5, 1e11});
    const auto covers = [&](std::size_t j, double truth) {
      return std::abs(fit.parameters[j].value - truth) < 1.676 * *fit.parameters[j].standard_error;
    };
    floor_covered += covers(0, toy::kFloorSeconds);
    rate_covered += covers(1, toy::kRate);
  }
  // 90 % of 200 with a standard deviation of 4.2; the sandwich is a little short with 50 groups.
  EXPECT_NEAR(floor_covered, 178, 17);
  EXPECT_NEAR(rate_covered, 178, 17);
}

TEST(Fit, NinetyPercentIntervalsCoverNinetyPercentOfHeldOutRows) {
  double covered = 0.0;
  double rows = 0.0;
  for (std::uint64_t world = 1; world <= 20; ++world) {
    const SeriesFit fit = fit_toy(toy::make_records(80, 0.04, 0.03, world));
    ASSERT_TRUE(fit.inside.has_value());
    covered += fit.inside->coverage_fraction * static_cast<double>(fit.inside->num_rows);
    rows += static_cast<double>(fit.inside->num_rows);
  }
  EXPECT_NEAR(covered / rows, 0.9, 0.02);
}

TEST(Fit, AProductOfTwoParametersIsReportedAsNotIdentified) {
  SeriesKey key = toy::key();
  key.kernel_source = "toy_degenerate";
  const SeriesFit fit = fit_series(toy::degenerate_family(), key, toy::device(),
                                   toy::make_records(40, 0.02, 0.02, 3), FitOptions{});
  EXPECT_TRUE(fit.parameters[0].standard_error.has_value());
  ASSERT_EQ(fit.null_directions.size(), 1U);
  EXPECT_FALSE(fit.parameters[1].standard_error.has_value());
  EXPECT_FALSE(fit.parameters[2].standard_error.has_value());
  EXPECT_FALSE(fit.warnings.empty());
  // The prediction is as good as if it were.
  EXPECT_LT(fit.inside->median_ape, 0.05);
}

TEST(Fit, OneRowAndEqualRowsGiveAStatedWideResult) {
  std::vector<Record> one = {toy::make_records(1, 0.0, 0.0, 1).front()};
  const SeriesFit single = fit_toy(one);
  EXPECT_FALSE(single.warnings.empty());
  EXPECT_FALSE(single.inside.has_value());
  EXPECT_FALSE(single.parameters[0].standard_error.has_value());
  EXPECT_GE(single.residual.scale, 0.5);

  std::vector<Record> equal = toy::make_records(10, 0.0, 0.0, 1);
  for (Record& record : equal) record.latency_seconds = 1e-5;
  const SeriesFit flat = fit_toy(equal);
  EXPECT_TRUE(std::any_of(flat.warnings.begin(), flat.warnings.end(),
                          [](const auto& w) { return w == "all rows have the same time"; }));
}

TEST(Split, AShapeIsNeverOnBothSidesAndTheDrawIgnoresRowOrder) {
  std::vector<Record> records = toy::make_records(60, 0.0, 0.0, 5);
  const auto held_shapes = [](const std::vector<Record>& rows, std::size_t min_rows) {
    const Groups groups = group_by_shape(toy::linear_family(), rows);
    const auto folds = make_folds(groups, toy::frontier(rows), 0.2, min_rows, 5, 1);
    std::vector<std::set<std::string>> result;
    for (const Fold& fold : folds) {
      std::set<std::string> held, fitted;
      for (const auto i : fold.held_out) held.insert(toy::shape_group(rows[i]));
      for (const auto i : fold.fitted) fitted.insert(toy::shape_group(rows[i]));
      for (const auto& shape : held) EXPECT_EQ(fitted.count(shape), 0U);
      for (const auto i : fold.fitted) EXPECT_LE(std::get<GemmRow>(rows[i].shape).m, 512.0);
      result.push_back(held);
    }
    return result;
  };
  const auto single = held_shapes(records, 10);
  ASSERT_EQ(single.size(), 1U);
  const auto folds = held_shapes(records, 100000);
  ASSERT_EQ(folds.size(), 5U);
  std::set<std::string> seen;
  for (const auto& held : folds) seen.insert(held.begin(), held.end());
  EXPECT_EQ(seen.size(), group_by_shape(toy::linear_family(), records).size());
  std::reverse(records.begin(), records.end());
  EXPECT_EQ(held_shapes(records, 10), single);
}

TEST(Prior, FewRowsWithAPriorBeatFewRowsAlone) {
  // Ten tables whose true parameters scatter by 20 %; a new one with three noisy rows.
  std::vector<SeriesFit> fits;
  for (std::uint64_t t = 0; t < 10; ++t) {
    std::vector<Record> records = toy::make_records(40, 0.02, 0.02, t + 1);
    Random random(t + 77);
    const double factor = std::exp(0.2 * random.normal());
    for (Record& record : records) record.latency_seconds *= factor;
    fits.push_back(fit_toy(records));
  }
  std::vector<Example> examples;
  for (const SeriesFit& fit : fits) examples.push_back({&fit, toy::device()});
  const FamilyPrior prior = learn_prior(toy::linear_family(), toy::key(), toy::device(), examples);
  EXPECT_NEAR(std::sqrt(prior.covariance(0, 0)), 0.2, 0.1);
  // Floor and rate move together across these tables: t ~ factor means rate ~ 1/factor.
  EXPECT_LT(prior.covariance(0, 1), 0.0);

  const std::vector<Record> fresh = toy::make_records(40, 0.05, 0.05, 99);
  const auto law = toy::linear_family().bind(toy::key(), toy::device(), fresh);
  std::vector<std::uint32_t> all(fresh.size());
  std::iota(all.begin(), all.end(), 0);
  const auto rows = choose_rows(
      law, prior, toy::linear_family().parameters(toy::key(), toy::device()), all, 3, 1);
  ASSERT_EQ(rows.size(), 3U);
  const SeriesFit few = fit_with_prior(toy::linear_family(), toy::key(), toy::device(), fresh, law,
                                       rows, prior, FitOptions{});
  EXPECT_TRUE(few.converged);
  EXPECT_LT(score(few, law, fresh, all).median_ape, 0.08);
  ASSERT_TRUE(few.parameters[0].standard_error.has_value());
  EXPECT_LT(*few.parameters[0].standard_error / few.parameters[0].value, 0.2);
}

TEST(Transfer, RatesFollowTheBandwidthAndTimesStay) {
  const SeriesFit fit = fit_toy(toy::make_records(40, 0.0, 0.0, 1));
  LawDevice twice = toy::device();
  twice.dram_bandwidth_bytes_per_second *= 2.0;
  const auto moved = move_parameters(toy::linear_family(), fit, toy::device(), twice);
  EXPECT_NEAR(moved[0], fit.parameters[0].value, 1e-12);
  EXPECT_NEAR(moved[1] / fit.parameters[1].value, 2.0, 1e-12);
  const SeriesFit there =
      move_fit(toy::linear_family(), fit, toy::key(), toy::device(), twice, 0.1);
  EXPECT_NEAR(there.covariance(1, 1) - fit.covariance(1, 1), 0.01, 1e-12);
}

}  // namespace
}  // namespace fulcrum::calibrate
