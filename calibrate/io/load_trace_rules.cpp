#include "calibrate/io/load_trace_rules.h"

#include <algorithm>
#include <filesystem>

#include "model/io/data_dir.h"
#include "model/io/json_reader.h"

namespace fulcrum::calibrate::io {
namespace {

using fulcrum::io::JsonObject;

constexpr std::string_view kFamilies[] = {"attention",   "gemm_fp8", "gemm_bf16",  "moe",
                                          "mhc",         "indexer",  "collective", "head",
                                          "elementwise", "draft"};

TraceRule read_rule(JsonObject& object) {
  TraceRule rule;
  rule.pattern = object.string("match");
  rule.op = object.string("op");
  rule.family = static_cast<OpFamily>(object.choice("family", kFamilies));
  object.string_or("note", "");
  try {
    rule.regex = std::regex(rule.pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    object.problem("match", "is no regular expression: " + std::string(error.what()),
                   "ECMAScript syntax");
  }
  if (!is_graph_op(rule.op) && !is_outside_op(rule.op)) {
    object.problem("op", "is \"" + rule.op + "\"",
                   "an op or slot of the step graph, or draft, memcpy, memset, bookkeeping");
  }
  return rule;
}

}  // namespace

TraceRules load_trace_rules(const std::string& path) {
  const nlohmann::json document = fulcrum::io::read_json_file(path);
  std::vector<InputProblem> problems;
  TraceRules rules;
  JsonObject root(document, path, "", problems);
  root.schema("fulcrum/trace_rules/1");
  rules.name = root.string("name");
  root.string_or("label", "");
  root.string("source");
  root.objects("rules", [&](JsonObject& object) { rules.rules.push_back(read_rule(object)); });
  root.reject_unknown();
  fulcrum::io::throw_if_any(problems);
  return rules;
}

TraceRules shipped_trace_rules(const TraceRules& first) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator(fulcrum::io::data_dir() + "/trace_rules", ignored)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  TraceRules all = first;
  for (const std::string& file : files) {
    TraceRules rules = load_trace_rules(file);
    all.name += (all.name.empty() ? "" : " + ") + rules.name;
    std::move(rules.rules.begin(), rules.rules.end(), std::back_inserter(all.rules));
  }
  return all;
}

}  // namespace fulcrum::calibrate::io
