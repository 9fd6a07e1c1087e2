#include "model/io/tuned_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "model/io/json_reader.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

/// Value of "KEY=..." in a comma-separated file name.
std::string field_of(const std::string& stem, const std::string& key) {
  std::size_t at = 0;
  while (at < stem.size()) {
    std::size_t end = stem.find(',', at);
    if (end == std::string::npos) end = stem.size();
    const std::string field = stem.substr(at, end - at);
    if (field.starts_with(key + "=")) return field.substr(key.size() + 1);
    at = end + 1;
  }
  return {};
}

std::optional<int> whole_number(const std::string& text) {
  constexpr long kMost = 1'000'000;
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 1 || value > kMost) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

std::string tuned_file_name(int n, int k, const std::string& label) {
  std::string device = label;
  std::replace(device.begin(), device.end(), ' ', '_');
  return "N=" + std::to_string(n) + ",K=" + std::to_string(k) + ",device_name=" + device +
         ",dtype=fp8_w8a8,block_shape=[128, 128].json";
}

TunedFile load_tuned_file(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  TunedFile file;
  const std::optional<int> n = whole_number(field_of(stem, "N"));
  const std::optional<int> k = whole_number(field_of(stem, "K"));
  std::vector<InputProblem> problems;
  if (!n || !k) {
    problems.push_back({path, "", "its name does not say N and K",
                        "N=..,K=..,device_name=..,dtype=fp8_w8a8,block_shape=[128, 128].json"});
  }
  file.n = n.value_or(0);
  file.k = k.value_or(0);
  file.device = field_of(stem, "device_name");
  const json document = read_json_file(path);
  JsonObject object(document, path, "", problems);
  throw_if_any(problems);
  object.each_member([&](const std::string& key, const json& value) {
    const std::optional<int> batch_size = whole_number(key);
    if (!batch_size) {
      // Newer vLLM tuners add the version of Triton that they ran.
      if (key != "triton_version") {
        object.problem(key, "is not a token count", "a whole number from 1");
      }
      return;
    }
    JsonObject entry(value, path, object.pointer_to(key), problems);
    if (!value.is_object()) return;
    constexpr Range kTile{1, 1024};
    TritonConfig config;
    config.block_m = entry.integer("BLOCK_SIZE_M", kTile);
    config.block_n = entry.integer("BLOCK_SIZE_N", kTile);
    config.block_k = entry.integer("BLOCK_SIZE_K", kTile);
    config.group_m = entry.integer("GROUP_SIZE_M", kTile);
    config.num_warps = entry.integer("num_warps", Range{1, 32});
    config.num_stages = entry.integer("num_stages", Range{1, 16});
    // AMD's files carry settings that NVIDIA's kernels do not have.
    for (const char* other : {"waves_per_eu", "matrix_instr_nonkdim", "kpack"}) entry.ignore(other);
    entry.reject_unknown();
    file.by_batch_size.emplace(*batch_size, config);
  });
  if (problems.empty() && file.by_batch_size.empty()) {
    problems.push_back({path, "", "holds no configuration", "token count -> configuration"});
  }
  throw_if_any(problems);
  return file;
}

nlohmann::ordered_json to_json(const TritonConfig& config) {
  return {{"BLOCK_SIZE_M", config.block_m}, {"BLOCK_SIZE_N", config.block_n},
          {"BLOCK_SIZE_K", config.block_k}, {"GROUP_SIZE_M", config.group_m},
          {"num_warps", config.num_warps},  {"num_stages", config.num_stages}};
}

}  // namespace fulcrum::io
