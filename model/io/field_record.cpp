#include "model/io/field_record.h"

#include <array>
#include <cmath>
#include <optional>
#include <regex>

#include "model/errors.h"
#include "model/io/data_dir.h"
#include "model/io/json_reader.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

constexpr double kMilli = 1e-3;

class Record {
 public:
  Record(const json& value, std::string file, std::string place)
      : value_(value), file_(std::move(file)), place_(std::move(place)) {}

  std::string text(const char* key) const {
    const auto it = value_.find(key);
    return it != value_.end() && it->is_string() ? it->get<std::string>() : std::string();
  }
  std::optional<double> number(const char* key) const {
    const auto it = value_.find(key);
    if (it == value_.end() || it->is_null()) return std::nullopt;
    constexpr double kMost = 1e15;
    if (!it->is_number() || !std::isfinite(it->get<double>()) || it->get<double>() < 0.0 ||
        it->get<double>() > kMost) {
      throw InputError({file_, place_ + "/" + key, "is " + found(*it), "a number from 0"});
    }
    return it->get<double>();
  }
  /// The number, where it can have been measured: zero is "not stated".
  std::optional<double> positive(const char* key) const {
    const auto x = number(key);
    return x && *x > 0.0 ? x : std::nullopt;
  }

 private:
  const json& value_;
  std::string file_;
  std::string place_;
};

/// Every pattern of `match` is found in the record's field of that name (case does not matter).
bool matches(const json& match, const Record& record) {
  for (const auto& [key, pattern] : match.items()) {
    const std::regex regex(pattern.get<std::string>(), std::regex::icase);
    if (!std::regex_search(record.text(key.c_str()), regex)) return false;
  }
  return true;
}

const json* first_match(const json& rules, const char* list, const Record& record) {
  for (const json& rule : rules.at(list)) {
    if (matches(rule.at("match"), record)) return &rule;
  }
  return nullptr;
}

/// The case under construction.
struct Draft {
  json scenario;
  json overrides = json::object();
  json measured = json::object();
  json assumptions = json::array();

  void assume(const std::string& path, const json& low, const json& high, const std::string& why) {
    assumptions.push_back(
        {{"what", path}, {"path", path}, {"low", low}, {"high", high}, {"why", why}});
  }
  void assume_spread(const std::string& what, double log_sigma, const std::string& why) {
    assumptions.push_back({{"what", what}, {"log_sigma", log_sigma}, {"why", why}});
  }
};

void take_rule(const json& rule, Draft& draft) {
  if (rule.contains("set")) {
    for (const auto& [path, value] : rule.at("set").items()) draft.overrides[path] = value;
  }
  if (rule.contains("assumptions")) {
    for (const json& one : rule.at("assumptions")) draft.assumptions.push_back(one);
  }
}

void fill_deployment(const Record& record, const json& hardware, const json& engine, Draft& draft) {
  const double gpus = record.positive("gpu_count").value_or(record.positive("tp").value_or(1.0));
  const double tp = record.positive("tp").value_or(gpus);
  json& s = draft.scenario;
  s = {{"schema", "fulcrum/scenario/1"},
       {"model", "deepseek-v4-flash"},
       {"hardware", hardware.at("hardware")},
       {"num_gpus", std::max(tp, gpus - std::fmod(gpus, tp))},
       {"tensor_parallel", tp},
       {"kernel_set", engine.at("kernel_set")},
       {"routing", {{"distribution", "uniform"}, {"neighbour_correlation", 0.0}}}};
  if (!record.positive("tp") && gpus > 1.0) {
    draft.assume_spread("tensor_parallel", 0.1, "the record does not say how the GPUs are used");
  }
  if (const auto ep = record.positive("ep")) s["expert_parallel"] = *ep;
  const std::string quant = record.text("weight_quant") + " " + record.text("checkpoint");
  const std::string model = record.text("model") + " " + record.text("checkpoint");
  const auto has = [](const std::string& text, const char* pattern) {
    return std::regex_search(text, std::regex(pattern, std::regex::icase));
  };
  const bool nvfp4 = has(quant, "nvfp4");
  const bool dspark = has(model, "0731|dspark") || has(record.text("spec_method"), "dspark");
  std::string name = has(model, "v4-pro") ? "deepseek-v4-pro" : "deepseek-v4-flash";
  if (dspark) name += "-0731";
  if (nvfp4) name += "-nvfp4";
  s["model"] = name;
  if (tp > 1.0) {
    const bool nvlink = has(record.text("interconnect"), "nvlink") ||
                        hardware.value("topology", std::string()) == "nvlink";
    s["topology"] = nvlink ? "nvlink" : "pcie_switch";
  }
}

void fill_engine(const Record& record, double concurrency, double longest, Draft& draft) {
  const bool vllm = std::regex_search(record.text("engine"), std::regex("vllm", std::regex::icase));
  const double running = record.positive("running_batch").value_or(std::max(256.0, concurrency));
  constexpr double kLeastContext = 16384.0;
  json engine{{"kind", vllm ? "vllm" : "sglang"},
              {"memory_fraction", vllm ? 0.95 : 0.88},
              {"max_running_requests", std::max(1.0, std::round(running))},
              {"max_context_tokens", std::max(kLeastContext, std::ceil(longest))},
              {"cuda_graph", true},
              {"graph_capture_max_tokens", 512},
              {"chunked_prefill_tokens", vllm ? 4096 : 8192}};
  if (std::regex_search(record.text("cuda_graph"),
                        std::regex("^(no|none|off|eager|false)", std::regex::icase))) {
    engine["cuda_graph"] = false;
  }
  draft.scenario["engine"] = engine;
}

/// A decode rate over a window in which no prompt is written.
bool is_steady(const Record& record) {
  if (std::regex_search(record.text("workload"), std::regex("sustained|steady|fixed-window"))) {
    return true;
  }
  return record.number("context_len") && !record.positive("input_len");
}

/// Tokens of prompt and answer; a steady decode at a context has no prompt to write.
double fill_workload(const Record& record, double concurrency, Draft& draft) {
  const auto input = record.positive("input_len");
  const auto output = record.positive("output_len");
  const auto context = record.number("context_len");
  const bool steady = is_steady(record);
  // Defaults of the two clients' random data sets, and what chat benchmarks use.
  constexpr double kInput = 512.0;
  constexpr double kOutput = 512.0;
  double in = input.value_or(std::max(context.value_or(kInput), 32.0));
  const double out = output.value_or(steady ? 2048.0 : kOutput);
  json workload{{"input_tokens", in}, {"output_tokens", out}, {"concurrency", {concurrency}}};
  if (steady) workload["cached_prefix_tokens"] = std::max(0.0, in - 1.0);
  draft.scenario["workload"] = workload;
  if (!input && !context) {
    draft.assume("workload.input_tokens", std::max(64.0, steady ? in : 0.0), 4096.0,
                 "the record states no prompt length");
  }
  if (!output) {
    draft.assume("workload.output_tokens", steady ? 512.0 : 128.0, steady ? 4096.0 : 2048.0,
                 "the record states no answer length");
  }
  return in + 4096.0 + out;
}

void fill_speculation(const Record& record, const json& rules, Draft& draft) {
  const std::string method = record.text("spec_method");
  const bool none =
      method.empty() || std::regex_search(method, std::regex("^(none|off|no)$", std::regex::icase));
  if (none) {
    draft.scenario["speculation"] = {{"method", "none"}};
    if (method.empty()) draft.assume_spread("speculation", 0.05, "taken as off: not stated");
    return;
  }
  const bool dspark = std::regex_search(method, std::regex("dspark", std::regex::icase));
  const double drafts = record.positive("spec_steps").value_or(dspark ? 5.0 : 1.0);
  json spec{{"method", dspark ? "dspark" : "mtp"}};
  spec[dspark ? "block" : "draft_tokens"] = drafts;
  auto accept = record.positive("accept_length");
  if (!accept) {
    if (const auto rate = record.number("accept_rate")) accept = 1.0 + drafts * *rate;
  }
  const json* profile = first_match(rules, "acceptance", record);
  if (accept && *accept > 1.0) {
    spec["accept_length"] = *accept;
    spec["acceptance_standard_error"] = 0.005;
    spec["acceptance_source"] = "the record";
    draft.measured["accept_length"] = *accept;
  } else if (accept) {  // nothing was accepted: verification and drafts are paid for all the same
    spec["acceptance"] = std::vector<double>(static_cast<std::size_t>(drafts), 0.0);
    spec["acceptance_standard_error"] = 0.0;
    spec["acceptance_source"] = "the record: accept rate 0";
  } else if (profile != nullptr) {
    for (const auto& [key, value] : profile->at("speculation").items()) spec[key] = value;
    take_rule(*profile, draft);
  }
  draft.scenario["speculation"] = spec;
  draft.scenario["routing"]["neighbour_correlation"] =
      rules.at("neighbour_correlation").at("value");
  draft.assume("routing.neighbour_correlation", rules.at("neighbour_correlation").at("low"),
               rules.at("neighbour_correlation").at("high"),
               rules.at("neighbour_correlation").at("source"));
}

void fill_latency(const Record& record, const std::string& prefix, json& measured,
                  const char* into) {
  json summary = json::object();
  for (const auto& [statistic, key] :
       {std::pair{"mean", "mean"}, std::pair{"p50", "median"}, std::pair{"p99", "p99"}}) {
    if (const auto ms = record.positive((prefix + "_" + key + "_ms").c_str())) {
      summary[statistic] = *ms * kMilli;
    }
  }
  if (!summary.empty()) measured[into] = summary;
}

void fill_measured(const Record& record, json& measured) {
  if (const auto x = record.positive("output_tok_s")) measured["output_tokens_per_second"] = *x;
  fill_latency(record, "tpot", measured, "tpot_seconds");
  fill_latency(record, "itl", measured, "itl_seconds");
  fill_latency(record, "ttft", measured, "ttft_seconds");
  if (const auto x = record.positive("num_prompts")) measured["num_prompts"] = *x;
  if (const auto x = record.positive("step_ms")) measured["step_seconds"] = *x * kMilli;
  if (const auto x = record.positive("step_per_s")) measured["step_seconds"] = 1.0 / *x;
  if (const auto x = record.positive("input_len")) measured["input_tokens_per_request"] = *x;
  if (const auto x = record.positive("output_len")) measured["output_tokens_per_request"] = *x;
  const auto prefill = record.positive("prefill_tok_s");
  const auto input = record.positive("input_len");
  if (prefill && input && !measured.contains("ttft_seconds")) {
    measured["ttft_seconds"] = *input / *prefill;
  }
}

/// What a panel's points share: everything stated but the load and what was measured.
std::string panel_of(const json& record) {
  constexpr std::array<const char*, 15> kShared{
      "source",     "source_file", "date",           "hardware",    "gpu",
      "gpu_count",  "engine",      "engine_version", "tp",          "spec_method",
      "spec_steps", "workload",    "input_len",      "context_len", "moe_backend"};
  std::string panel;
  for (const char* key : kShared) {
    if (record.contains(key)) panel += record.at(key).dump() + " ";
  }
  // Sampling of drafts and similar settings stand in the notes; numbers there are results.
  if (record.contains("notes") && record.at("notes").is_string()) {
    panel += std::regex_replace(record.at("notes").get<std::string>(), std::regex("[0-9.]+"), "#");
  }
  return panel;
}

}  // namespace

bool is_field_record(const json& value) {
  return value.is_object() && value.contains("kind") && value.contains("gpu") &&
         !value.contains("scenario");
}

json load_field_rules() {
  const std::string path = data_dir() + "/field/rules.json";
  json rules = read_json_file(path);
  std::vector<InputProblem> problems;
  if (rules.value("schema", "") != "fulcrum/field-rules/1") {
    throw InputError({path, "/schema", "is not fulcrum/field-rules/1", ""});
  }
  for (const char* list : {"hardware", "engines", "acceptance"}) {
    if (!rules.contains(list) || !rules.at(list).is_array()) {
      throw InputError({path, std::string("/") + list, "is missing", "an array of rules"});
    }
    for (std::size_t i = 0; i < rules.at(list).size(); ++i) {
      const std::string place = std::string("/") + list + "/" + std::to_string(i) + "/match";
      const json& rule = rules.at(list)[i];
      if (!rule.is_object() || !rule.contains("match") || !rule.at("match").is_object()) {
        throw InputError({path, place, "is missing", "field names and regular expressions"});
      }
      for (const auto& [key, pattern] : rule.at("match").items()) {
        try {
          const std::regex checked(pattern.get<std::string>());
        } catch (const std::exception&) {
          throw InputError({path, std::string(place).append("/").append(key),
                            "is " + found(pattern), "a regular expression (ECMAScript)"});
        }
      }
    }
  }
  return rules;
}

json case_of_record(const json& value, const json& rules, const std::string& file,
                    const std::string& place) {
  const Record record(value, file, place);
  const std::string id = record.text("id").empty() ? place : record.text("id");
  json out{{"id", id}, {"source", record.text("source")}, {"panel", panel_of(value)}};
  Draft draft;
  fill_measured(record, draft.measured);
  const auto exclude = [&](const std::string& why) {
    out["scenario"] = json::object();
    if (const auto load = record.positive("concurrency")) out["concurrency"] = *load;
    if (const auto length = record.positive("accept_length")) {
      draft.measured["accept_length"] = *length;
    }
    if (record.text("spec_method") == "none") draft.measured["speculation"] = "none";
    out["measured"] = draft.measured;
    out["exclude"] = why;
    return out;
  };
  if (record.text("kind") != "serving") {
    return exclude("a record of kind " + record.text("kind") + ", not a serving point");
  }
  const json* hardware = first_match(rules, "hardware", record);
  if (hardware == nullptr) return exclude("no hardware file for \"" + record.text("gpu") + "\"");
  if (hardware->contains("exclude")) return exclude(hardware->at("exclude"));
  const json* engine = first_match(rules, "engines", record);
  if (engine == nullptr) return exclude("its engine is not named well enough for a kernel set");
  if (engine->contains("exclude")) return exclude(engine->at("exclude"));
  const auto concurrency = record.positive("concurrency");
  if (!concurrency) return exclude("it states no concurrency");
  if (is_steady(record)) {  // counts of prompts are repeats there
    draft.measured.erase("ttft_seconds");
    draft.measured.erase("num_prompts");
  }
  const bool rates = draft.measured.contains("output_tokens_per_second") ||
                     draft.measured.contains("tpot_seconds") ||
                     draft.measured.contains("step_seconds");
  if (!rates && !draft.measured.contains("ttft_seconds")) {
    return exclude("it states no rate, latency or step");
  }
  if (!rates && !record.positive("input_len")) {
    return exclude("a prefill time without the prompt's length");
  }

  fill_deployment(record, *hardware, *engine, draft);
  const double longest = fill_workload(record, *concurrency, draft);
  fill_engine(record, *concurrency, longest, draft);
  fill_speculation(record, rules, draft);
  take_rule(*hardware, draft);
  take_rule(*engine, draft);
  if (engine->contains("one_row") && *concurrency == 1.0 &&
      draft.scenario.at("speculation").at("method") == "none") {
    for (const auto& [path, change] : engine->at("one_row").items()) draft.overrides[path] = change;
  }
  out["scenario"] = draft.scenario;
  out["overrides"] = draft.overrides;
  out["concurrency"] = *concurrency;
  out["measured"] = draft.measured;
  out["split"] = engine->value("split", "held_out");
  // Chat prompts get answers of all lengths; synthetic sets have one.
  constexpr double kChatLengths = 0.5;
  if (std::regex_search(record.text("workload"), std::regex("bench|chat", std::regex::icase)) &&
      !is_steady(record)) {
    out["length_ratio"] = kChatLengths;
  }
  out["assumptions"] = draft.assumptions;
  return out;
}

}  // namespace fulcrum::io
