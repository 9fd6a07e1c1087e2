#include "replay/io/collective_record.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "replay/io/machine_record.h"

namespace fulcrum::replay {
namespace {

using Json = nlohmann::ordered_json;
using collectives::CollectiveResult;
using collectives::LaunchKind;
using collectives::Setting;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

void put_setting(Json& json, const Setting& setting) {
  json["setting"] = setting.name();
  json["collective"] = to_string(setting.operation);
  json["carrier"] = to_string(setting.carrier);
  // Left out where the choice was NCCL's.
  if (!setting.protocol.empty()) json["protocol"] = setting.protocol;
  if (!setting.algorithm.empty()) json["algorithm"] = setting.algorithm;
  if (setting.channels > 0) json["channels"] = setting.channels;
}

Json state_to_json(const DeviceState& state) {
  Json json = Json::object();
  put(json, "sm_clock_hertz", state.sm_clock_hertz);
  put(json, "memory_clock_hertz", state.memory_clock_hertz);
  put(json, "power_watts", state.power_watts);
  put(json, "temperature_celsius", state.temperature_celsius);
  put(json, "throttle_reasons", state.throttle_reasons);
  return json;
}

void put_timing(Json& json, const CollectiveResult& r) {
  const SampleSummary& s = r.summary;
  json["median_seconds"] = s.median_seconds;
  json["mad_seconds"] = s.mad_seconds;
  json["p10_seconds"] = s.p10_seconds;
  json["p90_seconds"] = s.p90_seconds;
  json["median_ci95_seconds"] = {s.ci_low_seconds, s.ci_high_seconds};
  json["stop_reason"] = to_string(r.stop_reason);
  json["launches_per_sample"] = r.launches_per_sample;
  const double link = link_bytes(r.setting.operation, r.bytes, r.num_ranks);
  if (s.median_seconds > 0.0) json["bus_bytes_per_second"] = link / s.median_seconds;
  if (!r.wait_samples_seconds.empty()) {
    json["wait_median_seconds"] = summarize(r.wait_samples_seconds).median_seconds;
  }
  put(json, "injected_delay_seconds", r.injected_delay_seconds);
  if (!r.meet_seconds_by_rank.empty()) {
    json["in_kernel_meet_seconds_by_rank"] = r.meet_seconds_by_rank;
    json["in_kernel_move_seconds_by_rank"] = r.move_seconds_by_rank;
  }
  json["device_before"] = state_to_json(r.before);
  json["device_after"] = state_to_json(r.after);
  json["samples_seconds"] = r.samples_seconds;
  if (!r.wait_samples_seconds.empty()) json["wait_samples_seconds"] = r.wait_samples_seconds;
}

}  // namespace

std::string collectives_session_to_line(const CollectivesSession& s) {
  Json json = {{"schema", kCollectivesSchema}, {"record", "session"},   {"session", s.id},
               {"started_at", s.started_at},   {"argv", s.argv},        {"git_sha", s.git_sha},
               {"num_ranks", s.num_ranks},     {"launcher", s.launcher}};
  json["machine"] = Json::parse(machine_to_json(s.machine));
  return dump(json);
}

std::string collective_to_line(const CollectiveResult& r, const std::string& session_id) {
  Json json = {{"schema", kCollectivesSchema}, {"record", "collective"}, {"session", session_id}};
  put_setting(json, r.setting);
  json["num_ranks"] = r.num_ranks;
  json["message_bytes"] = r.bytes;
  json["launch"] = to_string(r.launch);
  json["status"] = r.status;
  if (!r.reason.empty()) json["reason"] = r.reason;
  json["nccl_environment"] = r.setting.environment();
  json["link_bytes"] = link_bytes(r.setting.operation, r.bytes, r.num_ranks);
  json["elements_checked"] = r.elements_checked;
  json["elements_wrong"] = r.elements_wrong;
  if (!r.samples_seconds.empty()) put_timing(json, r);
  return dump(json);
}

std::string collective_prediction_to_line(const Setting& setting, std::int64_t bytes, int num_ranks,
                                          const collectives::PriorLink& link, double seconds) {
  Json json = {{"schema", kCollectivesSchema}, {"record", "prediction"}};
  put_setting(json, setting);
  json["num_ranks"] = num_ranks;
  json["message_bytes"] = bytes;
  json["launch"] = to_string(LaunchKind::kGraph);
  json["predicted_seconds"] = seconds;
  json["link"] = {{"link_bytes_per_second", link.link_bytes_per_second},
                  {"hop_seconds", link.hop_seconds},
                  {"nvlink", link.nvlink}};
  return dump(json);
}

CollectiveLine read_collective_line(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    if (json.at("record") != "collective") throw std::runtime_error("no collective record");
    CollectiveLine result;
    result.setting = json.at("setting");
    result.bytes = json.at("message_bytes");
    result.launch = json.at("launch");
    result.status = json.at("status");
    result.reason = json.value("reason", "");
    result.delayed = json.contains("injected_delay_seconds");
    if (json.contains("median_seconds")) {
      const double median_seconds = json["median_seconds"];
      result.median_seconds = median_seconds;
      const double low = json.at("median_ci95_seconds").at(0);
      const double high = json.at("median_ci95_seconds").at(1);
      if (median_seconds > 0.0) {
        result.half_width_fraction = 0.5 * (high - low) / median_seconds;
        result.bus_bytes_per_second = json.at("bus_bytes_per_second").get<double>();
      }
    }
    return result;
  } catch (const Json::exception& error) {
    throw std::runtime_error(std::string("collective record: ") + error.what());
  }
}

}  // namespace fulcrum::replay
