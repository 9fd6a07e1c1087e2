#include "calibrate/io/calibration_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/errors.h"
#include "tests/calibrate/toy_family.h"

namespace fulcrum::calibrate {
namespace {

Calibration toy_calibration() {
  Calibration calibration;
  calibration.hardware = "toy-device";
  calibration.data_source = "toy rows";
  calibration.date = "2026-01-01";
  calibration.git_sha = "0123";
  TableProvenance table;
  table.file = "t.csv";
  table.sha256 = std::string(64, 'a');
  table.num_rows = 361;
  table.num_used = 360;
  table.num_quarantined[static_cast<std::size_t>(QuarantineReason::kNonMonotone)] = 1;
  calibration.tables.push_back(table);
  calibration.series.push_back(fit_series(toy::linear_family(), toy::key(), toy::device(),
                                          toy::make_records(60, 0.03, 0.02, 1), FitOptions{}));
  return calibration;
}

TEST(CalibrationFile, WhatIsWrittenIsReadBackAndWrittenAgainByteForByte) {
  const Calibration calibration = toy_calibration();
  const std::string text = io::calibration_text(calibration);
  const Calibration back = io::parse_calibration(text, "x.json");
  EXPECT_EQ(io::calibration_text(back), text);
  const SeriesFit& a = calibration.series[0];
  const SeriesFit& b = back.series[0];
  EXPECT_EQ(b.key, a.key);
  EXPECT_NEAR(b.parameters[1].value / a.parameters[1].value, 1.0, 1e-8);
  EXPECT_NEAR(b.covariance(0, 1) / a.covariance(0, 1), 1.0, 0.02);
  EXPECT_EQ(b.inside->num_rows, a.inside->num_rows);
  EXPECT_EQ(back.tables[0].num_quarantined, calibration.tables[0].num_quarantined);
}

TEST(CalibrationFile, ACorrectionIsReadBackAndPredictsTheSame) {
  std::vector<Record> records = toy::make_records(60, 0.0, 0.005, 1);
  for (Record& record : records) {
    record.latency_seconds *= 1.0 + 0.1 * std::sin(std::log2(std::get<GemmRow>(record.shape).n));
  }
  Calibration calibration = toy_calibration();
  calibration.series[0] =
      fit_series(toy::featured_family(), toy::key(), toy::device(), records, FitOptions{});
  ASSERT_FALSE(calibration.series[0].correction.empty());
  const std::string text = io::calibration_text(calibration);
  const Calibration back = io::parse_calibration(text, "x.json");
  EXPECT_EQ(io::calibration_text(back), text);
  const BoundLaw law = toy::featured_family().bind(toy::key(), toy::device(), records);
  const std::uint32_t rows[] = {0, 17, 200};
  const auto before = predict(calibration.series[0], law, rows);
  const auto after = predict(back.series[0], law, rows);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(after[i].seconds / before[i].seconds, 1.0, 1e-5);
  // A node with a number too few is refused.
  std::string damaged = text;
  const auto at = damaged.find("\"nodes\": [");
  const auto quote = damaged.find('"', at + 10);
  damaged.erase(quote + 1, damaged.find(' ', quote) - quote);
  EXPECT_THROW(io::parse_calibration(damaged, "x.json"), InputError);
}

TEST(CalibrationFile, EveryProblemIsReportedAtOnce) {
  std::string text = io::calibration_text(toy_calibration());
  const auto replace = [&](const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("\"converged\"", "\"convergd\"");
  replace("\"moves_as\": \"time\"", "\"moves_as\": \"slowly\"");
  replace("\"id\": \"gemm_perf", "\"id\": \"wrong");
  try {
    io::parse_calibration(text, "x.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_GE(error.problems().size(), 3U);
    const std::string message = error.what();
    EXPECT_NE(message.find("convergd"), std::string::npos);
    EXPECT_NE(message.find("slowly"), std::string::npos);
    EXPECT_NE(message.find("wrong"), std::string::npos);
  }
}

TEST(CalibrationFile, AnotherSchemaIsRefused) {
  std::string text = io::calibration_text(toy_calibration());
  text.replace(text.find("calibration/1"), 13, "calibration/9");
  EXPECT_THROW(io::parse_calibration(text, "x.json"), InputError);
}

TEST(CalibrationFile, ADamagedFileIsReadOrRefusedWithAnInputError) {
  const std::string whole = io::calibration_text(toy_calibration());
  Random random(2);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = whole;
    const auto at = static_cast<std::size_t>(random.uniform() * static_cast<double>(text.size()));
    constexpr const char* kPieces[] = {"null", "[]", "{}", "-1", "\"x\"", "1e400", ",", "\""};
    text.replace(at, 1 + static_cast<std::size_t>(random.uniform() * 4.0), kPieces[trial % 8]);
    try {
      io::parse_calibration(text, "x.json");
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace fulcrum::calibrate
