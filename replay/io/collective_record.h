// Collectives files, schema "fulcrum/collectives/1": JSON lines, appended and never rewritten. A
// "session" line describes machine, build and command; "collective" lines carry its id;
// "prediction" lines were written before anything was measured.
#pragma once

#include <string>
#include <vector>

#include "replay/collectives/prior.h"
#include "replay/collectives/result.h"
#include "replay/machine/facts.h"

namespace fulcrum::replay {

inline constexpr const char* kCollectivesSchema = "fulcrum/collectives/1";

struct CollectivesSession {
  std::string id;
  std::string started_at;  ///< UTC, ISO 8601
  std::vector<std::string> argv;
  std::string git_sha;
  int num_ranks = 0;
  std::string launcher;  ///< "threads of one process", or the launcher's name
  machine::MachineFacts machine;
};

std::string collectives_session_to_line(const CollectivesSession& session);
std::string collective_to_line(const collectives::CollectiveResult& result,
                               const std::string& session_id);
std::string collective_prediction_to_line(const collectives::Setting& setting, std::int64_t bytes,
                                          int num_ranks, const collectives::PriorLink& link,
                                          double seconds);

/// What a table needs of a stored line.
struct CollectiveLine {
  std::string setting;
  std::int64_t bytes = 0;
  std::string launch;
  std::string status;
  std::string reason;
  std::optional<double> median_seconds;
  std::optional<double> half_width_fraction;  ///< of the 95 % interval of the median
  std::optional<double> bus_bytes_per_second;
  bool delayed = false;
};
/// Throws std::runtime_error on a line that is no collective record.
CollectiveLine read_collective_line(const std::string& line);

}  // namespace fulcrum::replay
