// One imported table: usable series, and every row that was set aside with the reason.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/record.h"
#include "model/laws/law_device.h"

namespace fulcrum::calibrate {

/// Why a row is not used. Rows are never dropped without one of these.
enum class QuarantineReason {
  kMalformed,             ///< wrong number of fields, unreadable number, unknown label
  kNotPositive,           ///< time or size zero, negative, NaN or infinite
  kBelowLaunchFloor,      ///< shorter than a launch can be
  kAbovePhysics,          ///< faster than the device's peak rate allows
  kDuplicate,             ///< same shape again, same time: the first is kept
  kDisagreeingDuplicate,  ///< same shape, times apart: none is kept
  kEagerLaunch,           ///< host launch time inside a series of graph timings
  kWrongUnits,            ///< about a thousand times away from its neighbours
  kNonMonotone,           ///< one point far off both its smaller and its larger neighbour
  kSlowTactic,            ///< autotuned kernel far slower than with more work: a failed choice
};
inline constexpr std::size_t kNumQuarantineReasons = 10;
const char* to_string(QuarantineReason reason);

struct QuarantinedRow {
  std::uint32_t line = 0;  ///< in the file, header = 1
  QuarantineReason reason = QuarantineReason::kMalformed;
  std::string detail;  ///< the value found and the bound it broke
};

struct MeasurementTable {
  std::string file;    ///< as the user gave it
  std::string sha256;  ///< of the file's bytes, lower-case hex
  std::string table;   ///< e.g. "gemm_perf"
  std::string device;  ///< e.g. "rtx_pro_6000_server"
  std::vector<Series> series;
  std::vector<QuarantinedRow> quarantined;
  std::uint32_t num_rows = 0;  ///< data rows in the file
};

/// Quarantined rows by reason.
std::array<std::uint32_t, kNumQuarantineReasons> count_reasons(const MeasurementTable& table);

/// A time no launch of the record's work can beat: flop over dense peak for GEMM and balanced MoE,
/// message over link rate for collectives; 0 where no bound is known. `key` gives the format.
/// Leaves out memory traffic: tables are taken warm and small operands come from L2.
double least_seconds(const SeriesKey& key, const Record& record, const LawDevice& device);

/// Moves rows that cannot be right from the series to `quarantined`. Throws InputError when the
/// whole table is wrong: nothing left, or all times a thousand times off.
void screen(MeasurementTable& table, const LawDevice& device);

}  // namespace fulcrum::calibrate
