#include "calibrate/io/read_collectives.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "calibrate/families/collective_path.h"
#include "calibrate/io/import/imported_table.h"
#include "calibrate/io/sha256.h"
#include "model/errors.h"

namespace fulcrum::calibrate::io {
namespace {

using Json = nlohmann::json;

constexpr const char* kSchema = "fulcrum/collectives/1";
constexpr double kBytesPerElement = 2.0;  // replay sends bfloat16

[[noreturn]] void fail(const std::string& file, std::uint32_t line, const std::string& message,
                       const std::string& allowed) {
  throw InputError(InputProblem{file, "line " + std::to_string(line), message, allowed});
}

Series& series_at(std::vector<Series>& all, const SeriesKey& key) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Series& s) { return s.key == key; });
  if (found != all.end()) return *found;
  all.push_back({key, {}});
  return all.back();
}

void read_session(const Json& json, const std::string& file, std::uint32_t line,
                  const TableOrigin& origin, MeasurementTable& table, SeriesKey& common) {
  const Json& machine = json.at("machine");
  common.engine_version = machine.value("nccl_version", std::string("unknown"));
  std::string device = origin.device;
  std::string name;
  if (device.empty() && !machine.at("gpus").empty()) {
    name = machine.at("gpus").at(0).value("name", std::string());
    device = hardware_of_label(name);
    std::replace(device.begin(), device.end(), '-', '_');
  }
  if (device.empty()) {
    fail(file, line, "the GPU \"" + name + "\" is not in data/hardware/", "name it with --device");
  }
  if (!table.device.empty() && table.device != device) {
    fail(file, line, "a session on " + device + " after one on " + table.device,
         "one device per file");
  }
  table.device = common.device = device;
}

void read_entry(const Json& json, std::uint32_t line, MeasurementTable& table, SeriesKey common) {
  if (json.at("launch") != "graph" || json.contains("channels")) return;
  const double ranks = json.at("num_ranks");
  const std::string carrier = json.at("carrier");
  const std::string source = collective_source(carrier, json.value("protocol", std::string()),
                                               json.value("algorithm", std::string()));
  if (ranks < 2.0 || source.empty()) return;
  ++table.num_rows;
  const std::string status = json.at("status");
  if (status != "ok") {
    table.quarantined.push_back(
        {line, QuarantineReason::kMalformed, status + ": " + json.value("reason", std::string())});
    return;
  }
  const double seconds = json.at("median_seconds");
  const double bytes = json.at("message_bytes");
  if (!std::isfinite(seconds) || seconds <= 0.0 || !(bytes > 0.0)) {
    table.quarantined.push_back(
        {line, QuarantineReason::kNotPositive, "median_seconds or message_bytes"});
    return;
  }
  const std::string operation = json.at("collective");
  common.engine = carrier == "nccl" ? "nccl" : "fulcrum";
  if (carrier != "nccl") common.engine_version = "1";
  common.table = kCollectivesTable;
  common.op_name = operation;
  common.kernel_source = source;
  common.dtype = "bfloat16";
  const CollectiveRow row{
      .kind = operation == "all_reduce" ? CollectiveKind::kAllReduce : CollectiveKind::kAllGather,
      .num_gpus = ranks,
      .message_size = bytes / kBytesPerElement,
      .element_bytes = kBytesPerElement};
  series_at(table.series, common).records.push_back({row, seconds, line});
}

}  // namespace

bool is_collectives_file(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return false;
  const Json json = Json::parse(line, nullptr, false);
  return json.is_object() && json.contains("schema") && json["schema"] == kSchema;
}

MeasurementTable parse_collectives(std::string_view text, const std::string& file,
                                   const TableOrigin& origin) {
  MeasurementTable table;
  table.file = file;
  table.sha256 = sha256_hex(text);
  table.table = kCollectivesTable;
  SeriesKey common;
  for (std::uint32_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty()) continue;
    try {
      const Json json = Json::parse(content);
      if (json.at("schema") != kSchema) {
        fail(file, line, "schema is " + json["schema"].dump(), kSchema);
      }
      const std::string record = json.at("record");
      if (record == "session") {
        read_session(json, file, line, origin, table, common);
      } else if (record == "collective") {
        if (table.device.empty()) fail(file, line, "a measurement before any session", "a session");
        read_entry(json, line, table, common);
      }
    } catch (const Json::exception& error) {
      fail(file, line, error.what(), std::string("a line of ") + kSchema);
    }
  }
  if (table.series.empty()) {
    throw InputError(InputProblem{file, "", "nothing to fit",
                                  "graph launches of settings with a protocol of their own, by at "
                                  "least two ranks"});
  }
  return table;
}

MeasurementTable read_collectives(const std::string& path, const TableOrigin& origin) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(InputProblem{path, "", "cannot be opened", "a readable file"});
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return parse_collectives(text, path, origin);
}

}  // namespace fulcrum::calibrate::io
