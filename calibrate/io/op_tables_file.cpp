#include "calibrate/io/op_tables_file.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "calibrate/io/sha256.h"
#include "model/errors.h"

namespace fulcrum::calibrate::io {
namespace {

using Json = nlohmann::ordered_json;

OpRecord record_at(const Json& line) {
  OpRecord record;
  record.tensor_parallel = line.at("tensor_parallel");
  record.requests = line.at("requests");
  record.draft_tokens = line.at("draft_tokens");
  record.context_tokens = line.at("context_tokens");
  record.throttled = line.at("status") == "throttled";
  return record;
}

void read_line(const Json& line, StepRecords& records) {
  if (line.at("schema") != "fulcrum/measurement/1") {
    throw std::runtime_error("schema is not fulcrum/measurement/1");
  }
  const std::string kind = line.at("record");
  if (kind == "session") {
    records.device = line.at("device").at("name");
    records.git_sha = line.at("git_sha");
    return;
  }
  if (kind != "op_alone" && kind != "step") return;  // entries of other replays
  if (line.at("status") == "failed" || line.at("status") == "skipped") return;
  records.model = line.at("model");
  if (kind == "op_alone") {
    OpRecord record = record_at(line);
    record.op = line.at("op");
    record.seconds = line.at("seconds");
    record.standard_error_seconds = line.at("seconds_standard_error");
    records.alone.push_back(record);
    return;
  }
  if (!line.contains("ops")) return;
  for (const Json& op : line.at("ops")) {
    const std::string name = op.at("op");
    if (name.starts_with("draft.")) continue;
    OpRecord record = record_at(line);
    record.op = name;
    record.seconds = op.at("seconds").get<double>() / op.at("executions").get<double>();
    records.in_step.push_back(record);
  }
}

/// Nine significant digits, as in calibration files.
Json rounded(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    list.push_back(Json::parse(text));
  }
  return list;
}
Json rounded(double value) { return rounded(std::vector<double>{value})[0]; }

}  // namespace

StepRecords read_step_records(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError({path, "", "cannot be read", "a measurement file"});
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  StepRecords records;
  records.file = std::filesystem::path(path).filename().string();
  records.sha256 = sha256_hex(text);
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    try {
      read_line(Json::parse(line), records);
    } catch (const std::exception& error) {
      throw InputError({path, "line " + std::to_string(number), error.what(),
                        "records of `replay step` (schema fulcrum/measurement/1)"});
    }
  }
  if (records.alone.empty() && records.in_step.empty()) {
    throw InputError(
        {path, "", "holds no op_alone and no step records", "a file written by `replay step -o`"});
  }
  return records;
}

std::string op_tables_text(const OpTablesHeader& header, const std::vector<StepRecords>& files,
                           const std::vector<TabulatedOp>& tables) {
  Json json = {{"schema", "fulcrum/op_tables/1"},
               {"hardware", header.hardware},
               {"source", header.source},
               {"date", header.date}};
  json["measurements"] = Json::array();
  for (const StepRecords& file : files) {
    json["git_sha"] = file.git_sha;
    json["model"] = file.model;
    json["measurements"].push_back({{"file", file.file},
                                    {"sha256", file.sha256},
                                    {"num_records", file.alone.size() + file.in_step.size()}});
  }
  json["ops"] = Json::array();
  for (const TabulatedOp& op : tables) {
    json["ops"].push_back({{"op", op.table.op},
                           {"tokens", rounded(op.table.knots[0])},
                           {"width", rounded(op.table.knots[1])},
                           {"extent", rounded(op.table.knots[2])},
                           {"seconds", rounded(op.table.seconds)},
                           {"median_standard_error", rounded(op.median_standard_error)},
                           {"num_throttled", op.num_throttled},
                           {"log_sigma", rounded(op.table.log_sigma)},
                           {"sigma_seconds", rounded(op.table.sigma_seconds)}});
  }
  return json.dump(1) + "\n";
}

}  // namespace fulcrum::calibrate::io
