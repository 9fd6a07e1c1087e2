#include "replay/io/timing_json.h"

#include <optional>

namespace fulcrum::replay {
namespace {

template <typename T>
void put(nlohmann::ordered_json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

}  // namespace

nlohmann::ordered_json state_to_json(const DeviceState& state) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  put(json, "sm_clock_hertz", state.sm_clock_hertz);
  put(json, "memory_clock_hertz", state.memory_clock_hertz);
  put(json, "power_watts", state.power_watts);
  put(json, "temperature_celsius", state.temperature_celsius);
  put(json, "throttle_reasons", state.throttle_reasons);
  return json;
}

void add_timing(nlohmann::ordered_json& json, const Timing& timing) {
  const SampleSummary& s = timing.summary;
  json["median_seconds"] = s.median_seconds;
  json["mad_seconds"] = s.mad_seconds;
  json["p10_seconds"] = s.p10_seconds;
  json["p90_seconds"] = s.p90_seconds;
  json["median_ci95_seconds"] = {s.ci_low_seconds, s.ci_high_seconds};
  json["stop_reason"] = to_string(timing.stop_reason);
  json["launches_per_sample"] = timing.launches_per_sample;
  json["device_before"] = state_to_json(timing.before);
  json["device_after"] = state_to_json(timing.after);
  json["samples_seconds"] = timing.samples_seconds;
}

}  // namespace fulcrum::replay
