#include "calibrate/io/import/nvbench.h"

#include <algorithm>
#include <cctype>

#include "model/errors.h"
#include "model/io/import/record_reader.h"
#include "model/io/import/text_lines.h"
#include "model/io/valid_text.h"

namespace fulcrum::calibrate::io {
namespace {

using fulcrum::io::number_of;

using fulcrum::io::RecordReader;
using nlohmann::json;
using nlohmann::ordered_json;

/// The number called "value" in a list of named values [{"name", "type", "value"}].
std::optional<double> named_value(const json& values) {
  if (!values.is_array()) return std::nullopt;
  for (const json& entry : values) {
    if (!entry.is_object() || !entry.contains("value")) continue;
    if (entry.value("name", json("")) != json("value")) continue;
    const json& value = entry["value"];
    if (value.is_number()) return value.get<double>();
    if (value.is_string()) return number_of(value.get_ref<const std::string&>());
  }
  return std::nullopt;
}

std::optional<double> summary(const json& state, const std::string& tag) {
  const auto found = state.find("summaries");
  if (found == state.end()) return std::nullopt;
  std::optional<double> x;
  if (found->is_object()) {
    const auto entry = found->find(tag);
    if (entry != found->end() && entry->is_object() && entry->contains("values")) {
      x = named_value((*entry)["values"]);
    }
  } else if (found->is_array()) {
    for (const json& entry : *found) {
      if (!entry.is_object() || entry.value("tag", json("")) != json(tag)) continue;
      if (entry.contains("data")) x = named_value(entry["data"]);
    }
  }
  constexpr double kLargest = 1e12;
  return x && *x >= 0.0 && *x <= kLargest ? x : std::nullopt;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::map<std::string, std::string> axes_of(const json& state) {
  std::map<std::string, std::string> axes;
  const auto found = state.find("axis_values");
  if (found == state.end() || !found->is_array()) return axes;
  for (const json& axis : *found) {
    if (!axis.is_object() || !axis.contains("name") || !axis["name"].is_string()) continue;
    if (!axis.contains("value")) continue;
    const json& value = axis["value"];
    axes[axis["name"].get<std::string>()] =
        value.is_string() ? value.get<std::string>() : value.dump();
  }
  return axes;
}

/// The axis of that name in any case, as a number of at least one.
std::optional<double> size_axis(const NvbenchState& state, const std::string& name) {
  for (const auto& [axis, value] : state.axes) {
    if (lower(axis) != name) continue;
    const auto x = number_of(value);
    return x && *x >= 1.0 ? x : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

NvbenchResult read_nvbench(const json& document, const std::string& file) {
  std::vector<InputProblem> problems;
  const RecordReader root(document, file, "", problems);
  std::map<double, std::string> devices;
  if (const json* list = root.find("/devices"); list != nullptr && list->is_array()) {
    for (const json& device : *list) {
      const RecordReader r(device, file, "/devices", problems);
      devices[r.number("/id").value_or(0.0)] = r.text("/name");
    }
  }
  NvbenchResult result;
  const json* benchmarks = root.find("/benchmarks");
  if (benchmarks == nullptr || !benchmarks->is_array()) {
    throw InputError({file, "/benchmarks", "is missing", "JSON of an nvbench program (--json)"});
  }
  std::size_t index = 0;
  for (const json& benchmark : *benchmarks) {
    const std::string place = "/benchmarks/" + std::to_string(index++);
    const RecordReader b(benchmark, file, place, problems);
    const json* states = b.find("/states");
    if (states == nullptr || !states->is_array()) {
      b.problem("/states", "is no array", "the states of a benchmark");
      continue;
    }
    std::size_t number = 0;
    for (const json& state : *states) {
      const RecordReader s(state, file, place + "/states/" + std::to_string(number++), problems);
      if (!state.is_object()) {
        s.problem("", "is no object", "a state");
        continue;
      }
      const json* skipped = s.find("/is_skipped");
      if (skipped != nullptr && *skipped == json(true)) {
        ++result.num_skipped;
        continue;
      }
      NvbenchState one;
      one.benchmark = b.text("/name");
      const auto device = devices.find(s.number("/device").value_or(0.0));
      if (device != devices.end()) one.device = device->second;
      one.axes = axes_of(state);
      one.cold_seconds = summary(state, "nv/cold/time/gpu/mean");
      one.batch_seconds = summary(state, "nv/batch/time/gpu/mean");
      one.noise_fraction = summary(state, "nv/cold/time/gpu/stdev/relative");
      one.num_samples = summary(state, "nv/cold/sample_size");
      if (one.cold_seconds || one.batch_seconds) result.states.push_back(std::move(one));
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  if (result.states.empty()) {
    throw InputError({file, "", "holds no measured state", "a finished nvbench run"});
  }
  return result;
}

std::vector<ImportedTable> gemm_tables(const NvbenchResult& result) {
  constexpr double kMillisecondsPerSecond = 1e3;
  std::map<std::string, ImportedTable> by_device;
  for (const NvbenchState& state : result.states) {
    const auto m = size_axis(state, "m");
    const auto n = size_axis(state, "n");
    const auto k = size_axis(state, "k");
    if (!m || !n || !k || !state.cold_seconds || *state.cold_seconds <= 0.0) continue;
    ImportedTable& table = by_device[state.device];
    if (table.columns.empty()) {
      table.device = hardware_of_label(state.device);
      std::replace(table.device.begin(), table.device.end(), '-', '_');
      table.engine = "nvbench";
      table.family = "gemm";
      table.table = "gemm_perf";
      table.columns = {"op_name", "kernel_source", "gemm_dtype", "m", "n", "k", "latency_ms"};
    }
    std::string dtype = "unknown";
    for (const auto& [axis, value] : state.axes) {
      if (lower(axis).find("type") != std::string::npos) dtype = value;
    }
    std::string source = state.benchmark;
    for (std::string* field : {&source, &dtype}) {
      std::replace_if(
          field->begin(), field->end(),
          [](char c) { return c == ',' || c == '"' || c == '\n' || c == '\r'; }, '_');
    }
    table.rows.push_back({"gemm", source, dtype, table_number(*m), table_number(*n),
                          table_number(*k),
                          table_number(*state.cold_seconds * kMillisecondsPerSecond)});
  }
  std::vector<ImportedTable> tables;
  for (auto& [device, table] : by_device) tables.push_back(std::move(table));
  return tables;
}

ordered_json nvbench_json(const NvbenchResult& result, const std::string& source) {
  ordered_json states = ordered_json::array();
  for (const NvbenchState& state : result.states) {
    ordered_json one = {
        {"benchmark", state.benchmark}, {"device", state.device}, {"axes", state.axes}};
    if (state.cold_seconds) one["cold_seconds"] = *state.cold_seconds;
    if (state.batch_seconds) one["batch_seconds"] = *state.batch_seconds;
    if (state.noise_fraction) one["noise_fraction"] = *state.noise_fraction;
    if (state.num_samples) one["num_samples"] = *state.num_samples;
    states.push_back(std::move(one));
  }
  return {{"schema", "fulcrum/microbenchmark/1"},
          {"source", fulcrum::io::valid_utf8(source)},
          {"num_skipped", result.num_skipped},
          {"states", std::move(states)}};
}

}  // namespace fulcrum::calibrate::io
