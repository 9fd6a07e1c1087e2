#include "model/io/load_trace.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/errors.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

std::optional<double> first_number(const json& line, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto it = line.find(key);
    if (it != line.end() && it->is_number()) return it->get<double>();
  }
  return std::nullopt;
}

}  // namespace

std::vector<TraceRequest> load_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InputError({path, "", "cannot be read", "a JSONL file of requests"});
  constexpr double kSecondsPerMillisecond = 1e-3;
  std::vector<TraceRequest> trace;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = "line " + std::to_string(number);
    const json line = json::parse(text, nullptr, false);
    if (!line.is_object()) throw InputError({path, place, "is not a JSON object", ""});
    const auto milliseconds = first_number(line, {"timestamp"});
    const auto seconds = first_number(line, {"arrival_seconds", "arrival_time"});
    const auto input = first_number(line, {"input_length", "input_len", "prompt_len"});
    const auto output = first_number(line, {"output_length", "output_len"});
    if ((!milliseconds && !seconds) || !input || !output) {
      throw InputError({path, place, "lacks an arrival, an input length or an output length",
                        "timestamp (ms) or arrival_seconds; input_length; output_length"});
    }
    const double arrival = seconds ? *seconds : *milliseconds * kSecondsPerMillisecond;
    constexpr double kMostTokens = 1e9;
    if (!(*input >= 1.0 && *input <= kMostTokens) || !(*output >= 1.0 && *output <= kMostTokens)) {
      throw InputError({path, place, "has a length outside 1 .. 1e9", ""});
    }
    constexpr double kMostSeconds = 1e10;  // 300 years: covers Unix times, keeps clocks exact to us
    if (!(std::abs(arrival) <= kMostSeconds)) {
      throw InputError({path, place, "has an arrival outside 1e10 seconds of zero", ""});
    }
    trace.push_back({arrival, *input, *output});
  }
  if (trace.empty()) throw InputError({path, "", "holds no request", ""});
  std::stable_sort(trace.begin(), trace.end(), [](const auto& a, const auto& b) {
    return a.arrival_seconds < b.arrival_seconds;
  });
  const double start = trace.front().arrival_seconds;
  for (TraceRequest& request : trace) request.arrival_seconds -= start;
  return trace;
}

}  // namespace fulcrum::io
