#include "model/io/load_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "model/io/field_record.h"
#include "model/io/json_reader.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 13> kKnownKeys{
    "length_ratio", "id",    "scenario", "overrides",   "concurrency", "measured", "source",
    "pair",         "panel", "split",    "assumptions", "exclude",     "note"};

/// Resolves scenario documents, each distinct one once.
class Resolver {
 public:
  Deployment resolve(const ScenarioDocument& document) {
    const std::string key = document.file + "\n" + document.value.dump();
    const auto it = known_.find(key);
    if (it != known_.end()) return it->second;
    std::vector<std::string> warnings;
    return known_.emplace(key, resolve_scenario(document, warnings)).first->second;
  }

 private:
  std::map<std::string, Deployment> known_;
};

std::string text_or(const json& one, const char* key, const std::string& fallback) {
  return one.contains(key) && one.at(key).is_string() ? one.at(key).get<std::string>() : fallback;
}

ScenarioDocument scenario_of(const json& one, const std::string& id, const std::string& file) {
  const json& scenario = one.at("scenario");
  if (scenario.is_string()) {
    const std::filesystem::path beside =
        std::filesystem::path(file).parent_path() / scenario.get<std::string>();
    std::error_code ignored;
    const bool is_path = std::filesystem::is_regular_file(beside, ignored);
    return read_scenario(is_path ? beside.string() : scenario.get<std::string>());
  }
  ScenarioDocument document{file, scenario};
  if (!document.value.contains("schema")) document.value["schema"] = "fulcrum/scenario/1";
  if (!document.value.contains("name")) document.value["name"] = id;
  return document;
}

constexpr std::array<std::string_view, 4> kAcceptanceKeys{"acceptance", "workload", "accept_length",
                                                          "accepted_counts"};

bool says_acceptance(const json& speculation) {
  return std::any_of(kAcceptanceKeys.begin(), kAcceptanceKeys.end(),
                     [&](std::string_view key) { return speculation.contains(key); });
}

/// Sets one value. A way of stating acceptance replaces the scenario's own way.
void override_value(ScenarioDocument& document, const std::string& path, const json& value) {
  for (const std::string_view key : kAcceptanceKeys) {
    if (path != "speculation." + std::string(key) && path != "/speculation/" + std::string(key)) {
      continue;
    }
    json& speculation = document.value["speculation"];
    if (!speculation.is_object()) break;
    for (const std::string_view other : kAcceptanceKeys) speculation.erase(std::string(other));
  }
  set_value(document, path, value);
}

/// What the loader of scenarios wants said of acceptance, where a case says only the figure.
void complete_speculation(ScenarioDocument& document, const Measured& measured) {
  if (!document.value.contains("speculation")) {
    document.value["speculation"] = {{"method", "none"}};
  }
  json& speculation = document.value["speculation"];
  if (!speculation.is_object() || speculation.value("method", json("none")) == "none") return;
  const std::optional<double> stated = measured.result.accept_length;
  if (!says_acceptance(speculation) && stated) speculation["accept_length"] = *stated;
  if (speculation.contains("workload")) return;
  if (!speculation.contains("acceptance_standard_error")) {
    // Position 1 on MT-Bench between three servers (data/acceptance/).
    constexpr double kBetweenServers = 0.031;
    speculation["acceptance_standard_error"] = kBetweenServers;
  }
  if (!speculation.contains("acceptance_source")) speculation["acceptance_source"] = "the case";
}

/// [{"what", "why", "path", "low", "high"}] or [{"what", "why", "log_sigma"}].
void read_assumptions(const json& one, const ScenarioDocument& document, const std::string& file,
                      const std::string& place, Resolver& resolver, Case& out) {
  if (!one.contains("assumptions")) return;
  std::vector<InputProblem> problems;
  const json& list = one.at("assumptions");
  if (!list.is_array()) {
    throw InputError({file, place + "/assumptions", "is " + found(list), "an array of objects"});
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    JsonObject entry(list[i], file, place + "/assumptions/" + std::to_string(i), problems);
    throw_if_any(problems);
    AssumedRange range;
    range.what = entry.string_or("what", entry.string_or("path", "assumption"));
    range.why = entry.string("why");
    range.log_sigma = entry.number_or("log_sigma", Range{0.0, 2.0}, 0.0);
    const json* low = entry.raw("low");
    const json* high = entry.raw("high");
    if ((low != nullptr) != (high != nullptr) || (low != nullptr) != entry.has("path")) {
      entry.problem("", "gives a range in part", "path, low and high together");
    }
    const std::string path = entry.string_or("path", "");
    entry.reject_unknown();
    throw_if_any(problems);
    if (low != nullptr) {
      for (const auto& [end, into] : {std::pair{low, &range.low}, std::pair{high, &range.high}}) {
        ScenarioDocument changed = document;
        set_value(changed, path, *end);
        Deployment deployment = resolver.resolve(changed);
        if (out.acceptance_is_measured && path.find("speculation") == std::string::npos) {
          condition_on_accept_length(deployment.speculation, *out.measured.result.accept_length);
        }
        *into = std::move(deployment);
      }
    }
    out.assumptions.push_back(std::move(range));
  }
}

double concurrency_of(const json& one, const Measured& measured, const Deployment& deployment,
                      const std::string& file, const std::string& place) {
  constexpr Range kConcurrency{1.0, 1e6};
  if (one.contains("concurrency")) {
    const json& value = one.at("concurrency");
    if (!value.is_number() || !kConcurrency.contains(value.get<double>())) {
      throw InputError({file, place + "/concurrency", "is " + found(value),
                        "a number of requests, 1 to 1000000"});
    }
    return value.get<double>();
  }
  if (measured.result.concurrency) return *measured.result.concurrency;
  if (deployment.workload.concurrency.size() == 1) return deployment.workload.concurrency[0];
  throw InputError({file, place + "/concurrency", "is missing", "requests in flight"});
}

void check_form(const json& one, const std::string& file, const std::string& place) {
  std::vector<InputProblem> problems;
  if (!one.is_object()) {
    throw InputError({file, place, "is " + found(one), "an object: one case"});
  }
  if (!one.contains("scenario") ||
      !(one.at("scenario").is_string() || one.at("scenario").is_object())) {
    problems.push_back({file, place + "/scenario",
                        one.contains("scenario") ? "is " + found(one.at("scenario")) : "is missing",
                        "the name of a scenario, or a scenario as an object"});
  }
  if (!one.contains("measured")) {
    problems.push_back({file, place + "/measured", "is missing", "an object"});
  }
  if (one.contains("overrides") && !one.at("overrides").is_object()) {
    problems.push_back({file, place + "/overrides", "is " + found(one.at("overrides")),
                        "an object of scenario paths and values"});
  }
  throw_if_any(problems);
}

bool measures_something(const Measured& m) {
  return m.step_seconds || m.result.output_tokens_per_second || m.result.tpot.mean_seconds ||
         m.result.tpot.p50_seconds || m.result.ttft.mean_seconds || m.result.ttft.p50_seconds;
}

void add_case(const json& one, const std::string& file, std::size_t number, Resolver& resolver,
              CaseSet& set) {
  const std::string place = "line " + std::to_string(number) + ": ";
  check_form(one, file, place);
  Case out;
  out.id = text_or(one, "id", "line " + std::to_string(number));
  for (const auto& [key, unused] : one.items()) {
    if (std::find(kKnownKeys.begin(), kKnownKeys.end(), key) == kKnownKeys.end()) {
      set.warnings.push_back(
          std::string(file).append(": ").append(out.id).append(": \"").append(key).append(
              "\" is not read"));
    }
  }
  out.source = text_or(one, "source", "");
  out.panel = text_or(one, "panel", "");
  out.pair = text_or(one, "pair", "");
  out.split = text_or(one, "split", "");
  if (one.contains("length_ratio")) {
    const json& ratio = one.at("length_ratio");
    constexpr Range kRatio{0.0, 1.0, true};
    if (!ratio.is_number() || !kRatio.contains(ratio.get<double>())) {
      throw InputError({file, place + "/length_ratio", "is " + found(ratio), kRatio.text()});
    }
    out.length_ratio = ratio.get<double>();
  }
  out.measured = parse_measured(one.at("measured"), file, place + "/measured", set.warnings);
  if (one.contains("concurrency") && one.at("concurrency").is_number()) {
    out.measured.result.concurrency = one.at("concurrency").get<double>();
  }
  if (one.contains("exclude")) {
    set.excluded.push_back(
        {out.id, text_or(one, "exclude", "excluded by the case file"), std::move(out.measured)});
    return;
  }
  if (!measures_something(out.measured)) {
    set.excluded.push_back(
        {out.id, "measures nothing that a prediction has", std::move(out.measured)});
    return;
  }
  try {
    ScenarioDocument document = scenario_of(one, out.id, file);
    if (one.contains("overrides")) {
      for (const auto& [path, value] : one.at("overrides").items()) {
        override_value(document, path, value);
      }
    }
    complete_speculation(document, out.measured);
    out.deployment = resolver.resolve(document);
    out.concurrency = concurrency_of(one, out.measured, out.deployment, file, place);
    const std::optional<double> accept = out.measured.result.accept_length;
    if (accept && out.deployment.speculation.draft_tokens > 0) {
      out.acceptance_is_measured = condition_on_accept_length(out.deployment.speculation, *accept);
      if (!out.acceptance_is_measured) {
        set.warnings.push_back(file + ": " + out.id +
                               ": its accept length is not between 1 and 1 + drafts; the "
                               "scenario's stands");
      }
    }
    read_assumptions(one, document, file, place, resolver, out);
  } catch (const InputError& error) {
    set.excluded.push_back({out.id, describe({error.problems().front()}), std::move(out.measured)});
    return;
  }
  set.cases.push_back(std::move(out));
}

}  // namespace

std::vector<CaseDocument> read_case_documents(const std::string& path) {
  std::error_code ignored;
  std::ifstream in(path, std::ios::binary);
  if (!in || !std::filesystem::is_regular_file(path, ignored)) {
    throw InputError({path, "", "cannot be read", "a file of cases, JSON lines"});
  }
  json rules;  // read once, and only where there are records
  std::vector<CaseDocument> documents;
  const auto add = [&](json one, std::size_t number) {
    if (is_field_record(one)) {
      if (rules.is_null()) rules = load_field_rules();
      one = case_of_record(one, rules, path, "line " + std::to_string(number));
    }
    documents.push_back({std::move(one), number});
  };
  std::string line;
  std::size_t number = 0;
  while (std::getline(in, line)) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    json one = json::parse(line, nullptr, false);
    if (one.is_discarded() && documents.empty()) {  // not JSON lines: one document
      const json document = read_json_file(path);
      const json list = document.is_array() ? document : json::array({document});
      for (const json& entry : list) add(entry, documents.size() + 1);
      break;
    }
    // Once more for the message with its place, or for a key that stands twice.
    one = parse_json(line, path + " line " + std::to_string(number));
    if (one.is_array()) {
      for (const json& entry : one) add(entry, documents.size() + 1);
    } else {
      add(std::move(one), number);
    }
  }
  if (documents.empty()) throw InputError({path, "", "holds no case", "one JSON object a line"});
  return documents;
}

CaseSet load_cases(const std::string& path) {
  CaseSet set;
  Resolver resolver;
  for (const CaseDocument& document : read_case_documents(path)) {
    add_case(document.value, path, document.number, resolver, set);
  }
  return set;
}

}  // namespace fulcrum::io
