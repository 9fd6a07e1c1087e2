#include "calibrate/io/import/tuned_config.h"

#include <algorithm>

#include "calibrate/io/import/imported_table.h"
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

constexpr double kLargestSize = 1e9;

/// "NAME=value" up to the next ",NAME=" of a file name; block_shape=[128, 128] holds a comma.
std::string part_of_name(const std::string& name, const std::string& key) {
  std::size_t begin = name.rfind("," + key + "=");
  if (begin != std::string::npos) {
    begin += key.size() + 2;
  } else if (name.starts_with(key + "=")) {
    begin = key.size() + 1;
  } else {
    return {};
  }
  std::size_t end = begin;
  int depth = 0;
  while (end < name.size() && (name[end] != ',' || depth > 0)) {
    depth += name[end] == '[' ? 1 : name[end] == ']' ? -1 : 0;
    ++end;
  }
  return name.substr(begin, end - begin);
}

std::optional<double> size_in_name(const std::string& name, const std::string& key) {
  const auto x = number_of(part_of_name(name, key));
  return x && *x >= 1.0 && *x <= kLargestSize ? x : std::nullopt;
}

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> result;
  std::string digits;
  for (const char c : text + "]") {
    if (c >= '0' && c <= '9') {
      digits += c;
    } else if (!digits.empty()) {
      if (const auto x = number_of(digits)) result.push_back(*x);
      digits.clear();
    }
  }
  return result;
}

}  // namespace

bool is_tuned_config(const json& document) {
  if (!document.is_object() || document.empty()) return false;
  bool any = false;
  for (const auto& [key, value] : document.items()) {
    if (key == "triton_version") continue;
    if (!number_of(key) || !value.is_object() || !value.contains("BLOCK_SIZE_M")) return false;
    any = true;
  }
  return any;
}

TunedConfig read_tuned_config(const json& document, const std::string& file) {
  std::string name = file.substr(file.find_last_of('/') + 1);
  if (name.ends_with(".json")) name.resize(name.size() - 5);
  TunedConfig config;
  config.n = size_in_name(name, "N");
  config.k = size_in_name(name, "K");
  config.num_experts = size_in_name(name, "E");
  config.device_name = fulcrum::io::valid_utf8(part_of_name(name, "device_name"));
  std::replace(config.device_name.begin(), config.device_name.end(), '_', ' ');
  config.hardware = hardware_of_label(config.device_name);
  config.dtype = fulcrum::io::valid_utf8(part_of_name(name, "dtype"));
  config.block_shape = numbers_in(part_of_name(name, "block_shape"));
  std::vector<InputProblem> problems;
  if (!config.n || (!config.k && !config.num_experts)) {
    problems.push_back(
        {file, "file name", "does not state the shape",
         "N=..,K=..,device_name=..,dtype=..,block_shape=[128, 128].json, or E=..,N=.."});
  }
  if (!is_tuned_config(document)) {
    problems.push_back({file, "", "is no tuned configuration",
                        "an object of tiles (BLOCK_SIZE_M, ..) by number of rows"});
    throw InputError(std::move(problems));
  }
  for (const auto& [key, value] : document.items()) {
    if (key == "triton_version") continue;
    const RecordReader r(value, file, "/" + key, problems);
    TunedTile tile;
    tile.m = *number_of(key);
    const auto block = [&](const char* pointer) {
      const auto x = r.number(pointer);
      if (!x || *x < 1.0 || *x > kLargestSize) r.problem(pointer, "is no tile size", "1 or more");
      return x.value_or(1.0);
    };
    tile.block_m = block("/BLOCK_SIZE_M");
    tile.block_n = block("/BLOCK_SIZE_N");
    tile.block_k = block("/BLOCK_SIZE_K");
    tile.group_m = r.positive("/GROUP_SIZE_M");
    tile.num_warps = r.positive("/num_warps");
    tile.num_stages = r.positive("/num_stages");
    config.tiles.push_back(tile);
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  std::sort(config.tiles.begin(), config.tiles.end(),
            [](const TunedTile& a, const TunedTile& b) { return a.m < b.m; });
  return config;
}

ordered_json tuned_config_json(const TunedConfig& config, const std::string& source) {
  ordered_json out = {{"schema", "fulcrum/tuned-config/1"},
                      {"source", fulcrum::io::valid_utf8(source)}};
  if (config.n) out["n"] = *config.n;
  if (config.k) out["k"] = *config.k;
  if (config.num_experts) out["num_experts"] = *config.num_experts;
  out["device_name"] = config.device_name;
  if (!config.hardware.empty()) out["hardware"] = config.hardware;
  out["dtype"] = config.dtype;
  out["block_shape"] = config.block_shape;
  ordered_json tiles = ordered_json::array();
  for (const TunedTile& tile : config.tiles) {
    ordered_json one = {{"m", tile.m},
                        {"block_m", tile.block_m},
                        {"block_n", tile.block_n},
                        {"block_k", tile.block_k}};
    if (tile.group_m) one["group_m"] = *tile.group_m;
    if (tile.num_warps) one["num_warps"] = *tile.num_warps;
    if (tile.num_stages) one["num_stages"] = *tile.num_stages;
    tiles.push_back(std::move(one));
  }
  out["tiles"] = std::move(tiles);
  return out;
}

}  // namespace fulcrum::calibrate::io
