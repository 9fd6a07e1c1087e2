// Measurement files, schema "fulcrum/measurement/1": JSON lines, appended and never rewritten. A
// line with "record":"session" describes device, build and command; "record":"entry" lines carry
// its id.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/common/claim.h"
#include "replay/io/measurement_file.h"
#include "replay/nvml.h"
#include "replay/plan.h"
#include "replay/roofline.h"
#include "replay/verification.h"

namespace fulcrum::replay {

inline constexpr const char* kMeasurementSchema = "fulcrum/measurement/1";

struct Session {
  std::string id;
  std::vector<std::string> argv;
  std::string git_sha;
  std::string started_at;  // UTC, ISO 8601.
  std::string device_name;
  std::string device_uuid;
  std::string driver_version;
  int cuda_runtime_version = 0;
  int compute_capability = 0;
  std::int64_t num_sms = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t shared_memory_per_block_bytes = 0;
  std::optional<double> power_limit_watts;
  std::string nvml_absence;  // Empty when clocks and throttle reasons could be read.
};

// kNoisy and kThrottled keep their samples but are no basis for a fit.
enum class EntryStatus { kOk, kVerified, kNoisy, kThrottled, kSkipped, kFailed };
const char* to_string(EntryStatus status);

struct EntryResult {
  PlanItem item;
  EntryStatus status = EntryStatus::kFailed;
  std::string reason;  // Why skipped, failed, noisy or throttled.
  std::optional<Verification> verification;
  kernels::Claim claim;
  int num_sets = 0;
  std::optional<Timing> timing;
};

std::string session_to_line(const Session& session);
// Throws std::runtime_error on a line that is not a session record.
Session session_from_line(const std::string& line);
std::string entry_to_line(const EntryResult& entry, const std::string& session_id);

// A "prediction" record of a timed item, with the parameters that it came from.
std::string prediction_to_line(const PlanItem& item, const Roofline& roofline);

// One readable line for a stored entry line: status, time, spread, achieved rates.
struct LineSummary {
  std::string status;
  std::optional<double> median_seconds;  // Of a timed entry.
  std::string text;
};
LineSummary summarize_line(const std::string& entry_line);

// Keys (PlanItem::key()) of entries that need not be measured again: status ok, verified or
// skipped, in a session on the same device and build. A missing file gives an empty set; an
// unreadable line is ignored (the last line of a run that was killed).
std::set<std::string> finished_keys(const std::string& path, const Session& session);

}  // namespace fulcrum::replay
