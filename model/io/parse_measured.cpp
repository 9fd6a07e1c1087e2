#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "model/io/json_reader.h"
#include "model/io/load_case.h"
#include "model/io/serving_result_file.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

std::string not_read(const std::string& file, const std::string& place) {
  return file + ": " + place + " is not read";
}

/// Largest value any measured quantity may have, and smallest above zero.
constexpr Range kMeasurable{1e-12, 1e15};

std::optional<double> measured_number(const json& value, const std::string& file,
                                      const std::string& pointer,
                                      std::vector<InputProblem>& problems) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_number() || !kMeasurable.contains(value.get<double>())) {
    problems.push_back({file, pointer, "is " + found(value), "a positive number, or left out"});
    return std::nullopt;
  }
  return value.get<double>();
}

void read_latency(const json& value, const std::string& file, const std::string& pointer,
                  LatencySummary& summary, std::vector<std::string>& warnings,
                  std::vector<InputProblem>& problems) {
  if (!value.is_object()) {
    summary.mean_seconds = measured_number(value, file, pointer, problems);
    return;
  }
  for (const auto& [key, entry] : value.items()) {
    const std::string place = std::string(pointer).append("/").append(key);
    bool known = false;
    for (const LatencyStatistic& statistic : kLatencyStatistics) {
      if (key != statistic.key) continue;
      summary.*statistic.member = measured_number(entry, file, place, problems);
      known = true;
    }
    if (!known) warnings.push_back(not_read(file, place));
  }
}

bool is_measured_object(const json& value) {
  if (!value.is_object() || value.contains("schema")) return false;
  if (value.contains("step_seconds")) return true;
  for (const ServingNumber& number : kServingNumbers) {
    if (value.contains(number.key)) return true;
  }
  for (const ServingLatency& latency : kServingLatencies) {
    if (value.contains(latency.key)) return true;
  }
  return false;
}

/// Client files share keys with a bare measured object; they carry others that tell them apart.
bool is_client_file(const json& value) {
  for (const char* key : {"mean_ttft_ms", "median_ttft_ms", "request_throughput", "results"}) {
    if (value.contains(key)) return true;
  }
  return false;
}

void take_top_level(const json& one, Measured& measured) {
  if (one.contains("concurrency") && one.at("concurrency").is_number() &&
      !measured.result.concurrency) {
    measured.result.concurrency = one.at("concurrency").get<double>();
  }
}

}  // namespace

Measured parse_measured(const json& value, const std::string& file, const std::string& pointer,
                        std::vector<std::string>& warnings) {
  std::vector<InputProblem> problems;
  Measured measured;
  if (!value.is_object()) {
    throw InputError({file, pointer, "is " + found(value), "an object of measured quantities"});
  }
  for (const auto& [key, entry] : value.items()) {
    const std::string place = std::string(pointer).append("/").append(key);
    bool known = false;
    for (const ServingNumber& number : kServingNumbers) {
      if (key != number.key) continue;
      measured.result.*number.member = measured_number(entry, file, place, problems);
      known = true;
    }
    for (const ServingText& text : kServingTexts) {
      if (key != text.key) continue;
      if (entry.is_string()) measured.result.*text.member = entry.get<std::string>();
      known = true;
    }
    for (const ServingLatency& latency : kServingLatencies) {
      if (key != latency.key) continue;
      read_latency(entry, file, place, measured.result.*latency.member, warnings, problems);
      known = true;
    }
    if (key == "step_seconds") {
      measured.step_seconds = measured_number(entry, file, place, problems);
      known = true;
    }
    if (!known) warnings.push_back(not_read(file, place));
  }
  throw_if_any(problems);
  return measured;
}

std::vector<Measured> load_measured(const std::string& path, std::vector<std::string>& warnings) {
  std::ifstream in(path, std::ios::binary);
  if (!in || !std::filesystem::is_regular_file(path)) {
    throw InputError({path, "", "cannot be read", "a file of measurements"});
  }
  std::string first;
  while (first.empty() && std::getline(in, first)) {
    if (first.find_first_not_of(" \t\r") == std::string::npos) first.clear();
  }
  json document = json::parse(first, nullptr, false);  // JSON lines, or one object on one line
  const bool lines = !document.is_discarded();
  if (!lines) {
    in.clear();
    in.seekg(0);
    document = json::parse(in, nullptr, false);
  }
  std::vector<Measured> all;
  if (document.is_object() && document.contains("measured")) {
    std::size_t number = 0;
    std::string line = lines ? first : document.dump();
    do {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string place = "line " + std::to_string(number);
      const json one = parse_json(line, path);
      if (!one.contains("measured")) {
        throw InputError({path, place, "has no \"measured\"", "the same form in every line"});
      }
      Measured measured = parse_measured(one.at("measured"), path, "/measured", warnings);
      take_top_level(one, measured);
      all.push_back(std::move(measured));
    } while (lines && std::getline(in, line));
  } else if (is_measured_object(document) && !is_client_file(document)) {
    all.push_back(parse_measured(document, path, "", warnings));
  } else {
    for (ServingResult& result : read_serving_results(path)) {
      all.push_back({std::move(result), std::nullopt});
    }
  }
  if (all.empty()) throw InputError({path, "", "holds no measurement", "at least one"});
  return all;
}

}  // namespace fulcrum::io
