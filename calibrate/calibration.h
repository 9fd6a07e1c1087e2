// A device's calibration: every series that the tables hold and a family explains, fitted.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/fit.h"
#include "calibrate/measurement_table.h"

namespace fulcrum::calibrate {

/// Where rows came from. The rows themselves are not kept.
struct TableProvenance {
  std::string file;    ///< name without folder
  std::string sha256;  ///< of its bytes
  std::uint32_t num_rows = 0;
  std::uint32_t num_used = 0;
  std::array<std::uint32_t, kNumQuarantineReasons> num_quarantined{};  ///< by QuarantineReason
};

struct Calibration {
  std::string hardware;     ///< name of the hardware file, e.g. "rtx-pro-6000-server"
  std::string data_source;  ///< what the tables are and who published them, with commit
  std::string date;         ///< ISO day of the fit; empty if not recorded
  std::string git_sha;      ///< of the program; empty if not recorded
  std::vector<TableProvenance> tables;
  std::vector<SeriesFit> series;  ///< sorted by id
};

/// Name of a series within one device: "gemm_perf/sglang-0.5.14/gemm/sglang_torch_linear/bfloat16".
std::string series_id(const SeriesKey& key);

/// Records of one fit, pooled over tables as the family asks.
struct FitTask {
  const Family* family = nullptr;
  SeriesKey key;
  std::vector<Record> records;
};

/// Sorted by key. Series without a family are named in `unexplained`.
std::vector<FitTask> collect_tasks(std::span<const MeasurementTable> tables,
                                   std::vector<std::string>& unexplained);

TableProvenance provenance_of(const MeasurementTable& table);

/// Fits all tasks in order. `progress` (may be empty) is called before each.
std::vector<SeriesFit> fit_all(std::span<const FitTask> tasks, const LawDevice& device,
                               const FitOptions& options,
                               const std::function<void(const FitTask&)>& progress = {});

/// The fit of a series, or null.
const SeriesFit* find_series(const Calibration& calibration, const SeriesKey& key);

}  // namespace fulcrum::calibrate
