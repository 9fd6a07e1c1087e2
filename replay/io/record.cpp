#include "replay/io/record.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "replay/io/timing_json.h"

namespace fulcrum::replay {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

Json shape_to_json(const Shape& shape) {
  Json json = Json::object();
  for (const auto& [name, value] : shape.dims()) json[name] = value;
  return json;
}

void add_timing(Json& json, const Timing& timing, const kernels::Claim& claim) {
  add_timing(json, timing);
  const double median_seconds = timing.summary.median_seconds;
  if (median_seconds > 0) {
    json["achieved_bytes_per_second"] = claim.bytes / median_seconds;
    json["achieved_flop_per_second"] = claim.flop / median_seconds;
  }
}

// File keys for finished_keys(): the same text as PlanItem::key(), rebuilt from a stored entry.
std::string key_of(const Json& entry) {
  std::string dims;
  for (const auto& [name, value] : entry.at("shape").items()) {
    dims += (dims.empty() ? "" : ",") + name + "=" + std::to_string(value.get<std::int64_t>());
  }
  const std::string head = entry.at("kernel").get<std::string>() + " " + dims + " ";
  if (!entry.contains("cache")) return head + "verify";
  return head + entry.at("cache").get<std::string>() + " " + entry.at("launch").get<std::string>();
}

}  // namespace

const char* to_string(EntryStatus status) {
  switch (status) {
    case EntryStatus::kOk:
      return "ok";
    case EntryStatus::kVerified:
      return "verified";
    case EntryStatus::kNoisy:
      return "noisy";
    case EntryStatus::kThrottled:
      return "throttled";
    case EntryStatus::kSkipped:
      return "skipped";
    case EntryStatus::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string session_to_line(const Session& s) {
  Json json = {{"schema", kMeasurementSchema}, {"record", "session"}, {"session", s.id},
               {"started_at", s.started_at},   {"argv", s.argv},      {"git_sha", s.git_sha}};
  Json device = {{"name", s.device_name},
                 {"uuid", s.device_uuid},
                 {"compute_capability", s.compute_capability},
                 {"num_sms", s.num_sms},
                 {"l2_bytes", s.l2_bytes},
                 {"memory_bytes", s.memory_bytes},
                 {"shared_memory_per_block_bytes", s.shared_memory_per_block_bytes},
                 {"driver_version", s.driver_version},
                 {"cuda_runtime_version", s.cuda_runtime_version}};
  put(device, "power_limit_watts", s.power_limit_watts);
  if (!s.nvml_absence.empty()) device["nvml_absence"] = s.nvml_absence;
  json["device"] = device;
  return json.dump();
}

Session session_from_line(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    if (json.at("record") != "session") throw std::runtime_error("not a session record: " + line);
    const Json& device = json.at("device");
    Session s;
    s.id = json.at("session");
    s.started_at = json.at("started_at");
    s.argv = json.at("argv").get<std::vector<std::string>>();
    s.git_sha = json.at("git_sha");
    s.device_name = device.at("name");
    s.device_uuid = device.at("uuid");
    s.compute_capability = device.at("compute_capability");
    s.num_sms = device.at("num_sms");
    s.l2_bytes = device.at("l2_bytes");
    s.memory_bytes = device.at("memory_bytes");
    s.shared_memory_per_block_bytes = device.at("shared_memory_per_block_bytes");
    s.driver_version = device.at("driver_version");
    s.cuda_runtime_version = device.at("cuda_runtime_version");
    if (device.contains("power_limit_watts")) s.power_limit_watts = device["power_limit_watts"];
    s.nvml_absence = device.value("nvml_absence", "");
    return s;
  } catch (const Json::exception& error) {
    throw std::runtime_error("session record: " + std::string(error.what()) + " in: " + line);
  }
}

std::string entry_to_line(const EntryResult& entry, const std::string& session_id) {
  const PlanItem& item = entry.item;
  Json json = {{"schema", kMeasurementSchema},  {"record", "entry"},
               {"session", session_id},         {"kernel", item.kernel->name},
               {"family", item.kernel->family}, {"shape", shape_to_json(item.shape)}};
  if (item.time) {
    json["cache"] = to_string(item.cache);
    json["launch"] = to_string(item.launch);
  }
  json["status"] = to_string(entry.status);
  if (!entry.reason.empty()) json["reason"] = entry.reason;
  json["claimed_bytes"] = entry.claim.bytes;
  json["claimed_flop"] = entry.claim.flop;
  if (entry.verification) {
    const Verification& v = *entry.verification;
    json["verification"] = {{"num_elements", v.num_elements},
                            {"num_failed", v.num_failed},
                            {"relative_norm", v.relative_norm},
                            {"worst", v.worst}};
    // JSON has no infinity; a missing ratio with failures means NaN or unwritten output.
    if (v.worst_ratio < 1e300) json["verification"]["worst_error_over_tolerance"] = v.worst_ratio;
  }
  if (entry.timing) {
    json["num_sets"] = entry.num_sets;
    add_timing(json, *entry.timing, entry.claim);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string prediction_to_line(const PlanItem& item, const Roofline& roofline) {
  const kernels::Claim claim = item.kernel->claim(item.shape);
  const Json json = {{"schema", kMeasurementSchema},
                     {"record", "prediction"},
                     {"kernel", item.kernel->name},
                     {"family", item.kernel->family},
                     {"shape", shape_to_json(item.shape)},
                     {"cache", to_string(item.cache)},
                     {"launch", to_string(item.launch)},
                     {"claimed_bytes", claim.bytes},
                     {"claimed_flop", claim.flop},
                     {"predicted_seconds", roofline_seconds(claim, roofline)},
                     {"roofline",
                      {{"bytes_per_second", roofline.bytes_per_second},
                       {"flop_per_second", roofline.flop_per_second},
                       {"launch_seconds", roofline.launch_seconds}}}};
  return json.dump();
}

LineSummary summarize_line(const std::string& entry_line) {
  const Json json = Json::parse(entry_line);
  LineSummary summary{
      .status = json.at("status"), .median_seconds = std::nullopt, .text = json.at("status")};
  char text[200];
  if (json.contains("median_seconds")) {
    const double median = json["median_seconds"];
    summary.median_seconds = median;
    const double low = json["median_ci95_seconds"][0];
    const double high = json["median_ci95_seconds"][1];
    std::snprintf(text, sizeof text, "  %9.3f us +- %.2f %%  %8.1f GB/s  %8.2f TFLOP/s",
                  1e6 * median, 50 * (high - low) / median,
                  1e-9 * json.value("achieved_bytes_per_second", 0.0),
                  1e-12 * json.value("achieved_flop_per_second", 0.0));
    summary.text += text;
  }
  if (json.contains("verification")) {
    const Json& v = json["verification"];
    std::snprintf(text, sizeof text, "  %lld elements checked, worst error %.2f of tolerance",
                  v.at("num_elements").get<long long>(),
                  v.value("worst_error_over_tolerance", 0.0));
    summary.text += text;
  }
  if (json.contains("reason")) summary.text += "  " + json["reason"].get<std::string>();
  return summary;
}

std::set<std::string> finished_keys(const std::string& path, const Session& session) {
  std::set<std::string> keys;
  std::set<std::string> sessions;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded() || !json.is_object()) continue;
    try {
      if (json.at("record") == "session") {
        const Session other = session_from_line(line);
        if (other.device_uuid == session.device_uuid && other.git_sha == session.git_sha) {
          sessions.insert(other.id);
        }
      } else if (json.at("record") == "entry" && sessions.contains(json.at("session"))) {
        const std::string status = json.at("status");
        if (status == "ok" || status == "verified" || status == "skipped") {
          keys.insert(key_of(json));
        }
      }
    } catch (const std::exception&) {
      continue;  // A line of another schema version: measured again rather than trusted.
    }
  }
  return keys;
}

}  // namespace fulcrum::replay
