// A family small enough to work out by hand: time = floor + n k / rate, with a second law whose
// parameters cannot be told apart. Records are GemmRow.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/family.h"
#include "calibrate/random.h"
#include "model/laws/log_correction.h"

namespace fulcrum::calibrate::toy {

inline constexpr double kFloorSeconds = 3e-6;
inline constexpr double kRate = 1e12;

inline std::string shape_group(const Record& record) {
  const auto& row = std::get<GemmRow>(record.shape);
  return std::to_string(row.n) + "x" + std::to_string(row.k);
}

inline std::vector<bool> frontier(std::span<const Record> records) {
  std::vector<bool> outside;
  for (const Record& record : records) outside.push_back(std::get<GemmRow>(record.shape).m > 512.0);
  return outside;
}

/// floor_seconds + (m + 64) n k / rate
inline const Family& linear_family() {
  static const Family family{
      .name = "toy",
      .explains = [](const SeriesKey& key) { return key.kernel_source == "toy"; },
      .parameters =
          [](const SeriesKey&, const LawDevice&) {
            return std::vector<ParameterInfo>{
                {"floor_seconds", "s", 1e-7, 1e-4, 1e-5, Transfer::kTime},
                {"rate", "1/s", 1e9, 1e15, 1e11, Transfer::kPerSecond}};
          },
      .bind =
          [](const SeriesKey&, const LawDevice&, std::span<const Record> records) {
            std::vector<GemmRow> rows;
            for (const Record& r : records) rows.push_back(std::get<GemmRow>(r.shape));
            return bind_law<2>(std::move(rows), [](auto p, const GemmRow& row) {
              return p[0] + (row.m + 64.0) * row.n * row.k / p[1];
            });
          },
      .shape_group = shape_group,
      .frontier = frontier};
  return family;
}

/// The linear family with the features of a GEMM, so that a correction can be learned.
inline const Family& featured_family() {
  static const Family family = [] {
    Family featured = linear_family();
    featured.bind = [](const SeriesKey& k, const LawDevice& d, std::span<const Record> records) {
      std::vector<double> table = feature_table<kNumGemmFeatures>(records, [](const Record& r) {
        const auto& row = std::get<GemmRow>(r.shape);
        return gemm_features({.m = row.m, .n = row.n, .k = row.k});
      });
      return with_features<kNumGemmFeatures>(linear_family().bind(k, d, records), std::move(table));
    };
    return featured;
  }();
  return family;
}

/// Only the product of the two parameters matters.
inline const Family& degenerate_family() {
  static const Family family{
      .name = "toy_degenerate",
      .explains = [](const SeriesKey& key) { return key.kernel_source == "toy_degenerate"; },
      .parameters =
          [](const SeriesKey&, const LawDevice&) {
            return std::vector<ParameterInfo>{{"floor_seconds", "s", 1e-7, 1e-4, 1e-5},
                                              {"efficiency", "1", 0.01, 1.0, 0.5},
                                              {"peak", "1/s", 1e9, 1e15, 1e12}};
          },
      .bind =
          [](const SeriesKey&, const LawDevice&, std::span<const Record> records) {
            std::vector<GemmRow> rows;
            for (const Record& r : records) rows.push_back(std::get<GemmRow>(r.shape));
            return bind_law<3>(std::move(rows), [](auto p, const GemmRow& row) {
              return p[0] + (row.m + 64.0) * row.n * row.k / (p[1] * p[2]);
            });
          },
      .shape_group = shape_group,
      .frontier = frontier};
  return family;
}

inline SeriesKey key() {
  return {"toy_device", "engine", "1", "gemm_perf", "gemm", "toy", "bfloat16"};
}

/// `num_groups` shapes with m = 1..1024, times from the linear law; `group_sd` is shared by the
/// rows of a shape, `row_sd` is not (both log-normal).
inline std::vector<Record> make_records(int num_groups, double group_sd, double row_sd,
                                        std::uint64_t seed) {
  Random random(seed);
  std::vector<Record> records;
  for (int g = 0; g < num_groups; ++g) {
    const double n = 256.0 * std::floor(1.0 + 31.0 * random.uniform());
    const double k = 256.0 * std::floor(1.0 + 31.0 * random.uniform());
    const double shared = group_sd * random.normal();
    for (double m = 1.0; m <= 1024.0; m *= 4.0) {
      const double seconds = kFloorSeconds + (m + 64.0) * n * k / kRate;
      records.push_back({GemmRow{m, n, k}, seconds * std::exp(shared + row_sd * random.normal()),
                         static_cast<std::uint32_t>(records.size() + 2)});
    }
  }
  return records;
}

inline LawDevice device() {
  LawDevice d;
  d.num_sms = 100.0;
  d.dram_bandwidth_bytes_per_second = 2e12;
  d.l2_bytes = 64e6;
  d.peak_flop_per_second.fill(1e15);
  return d;
}

}  // namespace fulcrum::calibrate::toy
