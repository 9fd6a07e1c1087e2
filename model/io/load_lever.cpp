#include "model/io/load_lever.h"

#include <algorithm>
#include <filesystem>

#include "model/io/data_dir.h"
#include "model/io/json_reader.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

void add_ops_of(const std::string& name, std::vector<OpId>& ops) {
  for (int i = 0; i < kNumOpIds; ++i) {
    const auto id = static_cast<OpId>(i);
    if (name == name_of(id) || name == slot_of(id)) ops.push_back(id);
  }
}

void read_ceiling(JsonObject& object, CeilingOptions& ceiling) {
  if (const json* ops = object.raw("free_ops"); ops != nullptr && ops->is_array()) {
    for (const json& op : *ops) {
      const std::size_t before = ceiling.free_ops.size();
      if (op.is_string()) add_ops_of(op.get<std::string>(), ceiling.free_ops);
      if (ceiling.free_ops.size() == before) {
        object.problem("free_ops", found(op) + " is not an op or slot of the step graph");
      }
    }
  }
  ceiling.no_gap = object.boolean_or("no_gap", false);
  ceiling.accept_all_drafts_free = object.boolean_or("accept_all_drafts_free", false);
  ceiling.at_roofline = object.boolean_or("roofline_after", false);
  ceiling.no_gap = ceiling.no_gap || ceiling.at_roofline;
  if (ceiling.free_ops.empty() && !ceiling.no_gap && !ceiling.accept_all_drafts_free) {
    object.problem("", "says nothing that the lever acts on",
                   "free_ops, no_gap, accept_all_drafts_free or roofline_after");
  }
}

}  // namespace

LeverDocument load_lever(const std::string& name) {
  const std::string path = resolve("levers", name, "command line", "--lever");
  const json document = read_json_file(path);
  std::vector<InputProblem> problems;
  JsonObject object(document, path, "", problems);
  throw_if_any(problems);
  LeverDocument out;
  object.schema("fulcrum/lever/1");
  out.lever.name = object.string("name");
  out.lever.title = object.string("title");
  out.architecture = object.string_or("architecture", "");
  object.ignore("note");
  object.object("effort", [&](JsonObject& effort) {
    out.lever.effort_minutes = effort.number("minutes", kPositive);
    out.lever.effort_source = effort.string("source");
  });
  object.optional_object("claim", [&](JsonObject& claim) {
    out.lever.claimed_gain_ratio = claim.number("gain_ratio", kPositive);
    out.lever.claim_source = claim.string("source");
  });
  object.object("ceiling", [&](JsonObject& ceiling) { read_ceiling(ceiling, out.lever.ceiling); });
  object.object("set", [&](JsonObject& changes) {
    changes.each_member([&](const std::string& pointer, const json& value) {
      if (!pointer.starts_with('/')) {
        changes.problem(pointer, "is not a JSON pointer into a scenario",
                        "e.g. /engine/cuda_graph");
      }
      out.changes.emplace_back(pointer, value);
    });
  });
  object.reject_unknown();
  throw_if_any(problems);
  return out;
}

std::vector<std::string> lever_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  const auto directory = std::filesystem::path(data_dir()) / "levers";
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Lever combined(std::span<const LeverDocument* const> levers) {
  Lever all;
  for (const LeverDocument* document : levers) {
    const Lever& lever = document->lever;
    all.name += (all.name.empty() ? "" : " + ") + lever.name;
    all.title += (all.title.empty() ? "" : "; ") + lever.title;
    all.effort_minutes += lever.effort_minutes;
    const CeilingOptions& ceiling = lever.ceiling;
    all.ceiling.no_gap = all.ceiling.no_gap || ceiling.no_gap;
    all.ceiling.accept_all_drafts_free =
        all.ceiling.accept_all_drafts_free || ceiling.accept_all_drafts_free;
    all.ceiling.at_roofline = all.ceiling.at_roofline || ceiling.at_roofline;
    all.ceiling.free_ops.insert(all.ceiling.free_ops.end(), ceiling.free_ops.begin(),
                                ceiling.free_ops.end());
  }
  return all;
}

bool are_alternatives(const LeverDocument& a, const LeverDocument& b) {
  return std::any_of(a.changes.begin(), a.changes.end(), [&](const auto& change) {
    return std::any_of(b.changes.begin(), b.changes.end(), [&](const auto& other) {
      return change.first == other.first && change.second != other.second;
    });
  });
}

ScenarioDocument pull(const ScenarioDocument& scenario, const LeverDocument& lever) {
  ScenarioDocument changed = scenario;
  for (const auto& [pointer, value] : lever.changes) set_value(changed, pointer, value);
  return changed;
}

}  // namespace fulcrum::io
