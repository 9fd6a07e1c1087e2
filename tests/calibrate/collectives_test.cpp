// The collectives measured on two H200: a law fitted to half of the sizes must predict the other
// half, and pick the protocol that is really fastest there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "calibrate/families/collective_path.h"
#include "calibrate/fit.h"
#include "calibrate/io/read_collectives.h"
#include "calibrate/measurement_table.h"
#include "model/errors.h"
#include "model/io/load_hardware.h"

namespace fulcrum::calibrate {
namespace {

const std::string kSource = FULCRUM_SOURCE_DIR;
const std::string kFile =
    kSource + "/data/measurements/2026-12-01-h200x2-collectives/collectives.jsonl";

// Bars of the project for collectives: half of the sizes predicts the other half.
constexpr double kMedianBar = 0.05;
constexpr double kP90Bar = 0.12;
constexpr double kPickBar = 0.95;

struct HalfFit {
  std::vector<double> held_out_errors;
  /// By series, then bytes, of the sizes not fitted.
  std::map<std::string, std::map<double, double>> predicted, measured;
};

/// Sizes alternate between fitted and held out, beginning with `first_held_out`.
HalfFit fit_half(std::size_t first_held_out) {
  const Hardware hardware = fulcrum::io::load_hardware(kSource + "/data/hardware/h200-sxm.json");
  const LawDevice device = law_device(hardware, hardware.link(Topology::kNvlink));
  MeasurementTable table = io::read_collectives(kFile);
  screen(table, device);
  EXPECT_TRUE(table.quarantined.empty());
  HalfFit result;
  for (Series& series : table.series) {
    std::sort(series.records.begin(), series.records.end(), [](const Record& a, const Record& b) {
      return std::get<CollectiveRow>(a.shape).message_size <
             std::get<CollectiveRow>(b.shape).message_size;
    });
    std::vector<std::uint32_t> fitted;
    std::vector<std::uint32_t> held_out;
    for (std::uint32_t i = 0; i < series.records.size(); ++i) {
      (i % 2 == first_held_out ? held_out : fitted).push_back(i);
    }
    const Family& family = collective_path_family();
    const BoundLaw law = family.bind(series.key, device, series.records);
    const SeriesFit fit = fit_rows(family, series.key, device, series.records, law, fitted, {});
    EXPECT_TRUE(fit.converged) << series.key.kernel_source;
    const std::string id = series.key.op_name + " " + series.key.kernel_source;
    const auto predictions = predict(fit, law, held_out);
    for (std::size_t i = 0; i < held_out.size(); ++i) {
      const Record& record = series.records[held_out[i]];
      const double bytes = std::get<CollectiveRow>(record.shape).message_size * 2.0;
      result.predicted[id][bytes] = predictions[i].seconds;
      result.measured[id][bytes] = record.latency_seconds;
      result.held_out_errors.push_back(
          std::abs(predictions[i].seconds / record.latency_seconds - 1.0));
    }
  }
  return result;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

struct Picks {
  int right = 0;
  int all = 0;
};

/// The law picks the fastest of `names` at every size; right when no other was measured faster.
void count_picks(const HalfFit& half, const std::vector<std::string>& names, Picks& picks) {
  const auto best = [&](const auto& times, double bytes) {
    return *std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
      return times.at(a).at(bytes) < times.at(b).at(bytes);
    });
  };
  for (const auto& [bytes, unused] : half.measured.at(names.front())) {
    const std::string picked = best(half.predicted, bytes);
    const std::string fastest = best(half.measured, bytes);
    ++picks.all;
    picks.right += picked == fastest ? 1 : 0;
    if (picked == fastest) continue;
    std::cout << bytes << " B: picked " << picked << ", " << fastest << " is faster by "
              << 100.0 * (half.measured.at(picked).at(bytes) / half.measured.at(fastest).at(bytes) -
                          1.0)
              << " %\n";
  }
}

TEST(Collectives, HalfOfTheSizesPredictsTheOtherHalfAndThePick) {
  std::vector<double> errors;
  Picks picks;
  for (const std::size_t first_held_out : {1u, 0u}) {
    const HalfFit half = fit_half(first_held_out);
    errors.insert(errors.end(), half.held_out_errors.begin(), half.held_out_errors.end());
    for (const char* algorithm : {"", "_Ring", "_Tree"}) {
      std::vector<std::string> names;
      for (const char* protocol : {"LL", "LL128", "Simple"}) {
        names.push_back(std::string("all_reduce nccl_") + protocol + algorithm);
      }
      count_picks(half, names, picks);
    }
    count_picks(half, {"all_gather nccl_LL", "all_gather nccl_LL128", "all_gather nccl_Simple"},
                picks);
    count_picks(half,
                {"all_reduce nccl_LL", "all_reduce nccl_LL128", "all_reduce nccl_Simple",
                 "all_reduce peer_one_shot", "all_reduce peer_two_shot"},
                picks);
  }
  const double median = quantile(errors, 0.5);
  const double p90 = quantile(errors, 0.9);
  std::cout << errors.size() << " held-out sizes: median " << 100.0 * median << " %, p90 "
            << 100.0 * p90 << " %; fastest picked at " << picks.right << " of " << picks.all
            << '\n';
  EXPECT_LE(median, kMedianBar);
  EXPECT_LE(p90, kP90Bar);
  EXPECT_GE(picks.right, kPickBar * picks.all);
}

TEST(ReadCollectives, TakesGraphLaunchesOfNamedProtocolsOnly) {
  const MeasurementTable table = io::read_collectives(kFile);
  EXPECT_EQ(table.device, "h200_sxm");
  // All-reduce: three protocols by NCCL's choice of algorithm, ring and tree, and two peer kernels;
  // all-gather: three by choice and by ring.
  EXPECT_EQ(table.series.size(), 9u + 2u + 6u);
  EXPECT_EQ(table.num_rows, 17u * 19u);
  for (const Series& series : table.series) EXPECT_EQ(series.records.size(), 19u);
}

TEST(ReadCollectives, DamagedFilesNameTheLine) {
  const std::string session =
      R"({"schema":"fulcrum/collectives/1","record":"session","machine":{"gpus":[{"name":"NVIDIA H200"}]}})"
      "\n";
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      (void)io::parse_collectives(text, "f.jsonl");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of(session).find("nothing to fit"), std::string::npos);
  EXPECT_NE(error_of(session + "{\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of(R"({"schema":"fulcrum/other/1"})").find("fulcrum/collectives/1"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"schema":"fulcrum/collectives/1","record":"collective"})")
                .find("before any session"),
            std::string::npos);
  EXPECT_NE(
      error_of(
          R"({"schema":"fulcrum/collectives/1","record":"session","machine":{"gpus":[{"name":"X"}]}})")
          .find("--device"),
      std::string::npos);
}

}  // namespace
}  // namespace fulcrum::calibrate
