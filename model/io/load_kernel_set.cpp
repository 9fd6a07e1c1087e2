#include "model/io/load_kernel_set.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "model/io/data_dir.h"
#include "model/io/json_reader.h"
#include "model/io/load_calibration.h"
#include "model/io/load_hardware.h"
#include "model/io/load_op_table.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

/// Added spread when parameters come from another GPU of the same architecture: the project's bar
/// for moved parameters is a median error of 10 %, which is a log spread of 0.10 / 0.674.
constexpr double kTransferLogSigma = 0.15;

struct Context {
  const Hardware& hardware;
  std::shared_ptr<const Calibration> calibration;  ///< null where none is shipped
  std::optional<OpTables> op_tables;               ///< read when a binding first names one
  std::optional<Hardware> measured_on;             ///< set when the calibration is another GPU's
  std::vector<InputProblem>& problems;
  bool moved = false;
  bool said_uncalibrated = false;
  bool only_checking = false;  ///< a variant nobody named: its series may be another GPU's
};

void read_traits(JsonObject& object, KernelTraits& traits) {
  constexpr std::array<std::string_view, 2> kWidths{"live", "configured"};
  constexpr std::array<std::string_view, 2> kWoA{"fp8", "bf16"};
  constexpr std::array<std::string_view, 2> kScales{"e8m0", "fp32"};
  traits.heads_padded_to =
      object.integer_or("heads_padded_to", Range{0, 1024}, traits.heads_padded_to);
  traits.attention_rows = static_cast<Width>(
      object.choice_or("attention_rows", kWidths, static_cast<std::size_t>(traits.attention_rows)));
  traits.indexer_keys = static_cast<Width>(
      object.choice_or("indexer_keys", kWidths, static_cast<std::size_t>(traits.indexer_keys)));
  traits.wo_a_bf16 = object.choice_or("wo_a", kWoA, traits.wo_a_bf16 ? 1 : 0) == 1;
  traits.mxfp4_scales_as_fp32 =
      object.choice_or("mxfp4_scales", kScales, traits.mxfp4_scales_as_fp32 ? 1 : 0) == 1;
  traits.index_row_bytes =
      object.number_or("index_row_bytes", Range{1, 1024}, traits.index_row_bytes);
  traits.side_stream_max_tokens =
      object.number_or("side_stream_max_tokens", kNonNegative, traits.side_stream_max_tokens);
  constexpr std::array<std::string_view, 2> kPlacements{"per_request_slot", "per_pool_token"};
  traits.hca_state = static_cast<HcaStatePlacement>(
      object.choice_or("hca_state", kPlacements, static_cast<std::size_t>(traits.hca_state)));
  object.ignore("note");
}

/// A rate moves with the device's bandwidth; latencies and ratios stay as they are.
double moved_value(double value, const ParameterInfo& info, const Context& context) {
  if (!context.measured_on || info.transfer != Transfer::kPerSecond) return value;
  return value * context.hardware.memory_bandwidth_gb_per_s.value /
         context.measured_on->memory_bandwidth_gb_per_s.value;
}

void read_parameters(JsonObject& object, const LawInfo& law, KernelBinding& binding,
                     Context& context) {
  std::map<std::string, Sourced, std::less<>> inline_values;
  object.optional_object("parameters", [&](JsonObject& parameters) {
    for (const ParameterInfo& info : law.parameters) {
      if (parameters.has(info.name)) {
        inline_values.emplace(info.name,
                              parameters.sourced(info.name, Range{info.lower, info.upper}));
      }
    }
  });
  // A fit of a whole module names its kernels' parameters apart: law name -> name in the series.
  std::map<std::string, std::string, std::less<>> names_in_series;
  object.optional_object("parameter_names", [&](JsonObject& names) {
    for (const ParameterInfo& info : law.parameters) {
      if (names.has(info.name)) {
        names_in_series.emplace(info.name, names.string(info.name));
      }
    }
  });
  const CalibratedSeries* series = nullptr;
  if (object.has("calibration")) {
    const std::string id = object.string("calibration");
    if (context.only_checking) return;
    if (!context.calibration) {
      if (!context.said_uncalibrated) {
        object.problem("calibration", "no calibration is shipped for " + context.hardware.name,
                       "a GPU of a calibrated architecture, or inline parameters");
      }
      context.said_uncalibrated = true;
      return;
    }
    const auto it = context.calibration->series.find(id);
    if (it == context.calibration->series.end()) {
      std::vector<std::string> ids;
      for (const auto& [name, unused] : context.calibration->series) ids.push_back(name);
      const auto near = nearest_name(id, ids);
      object.problem("calibration", "\"" + id + "\" is not in " + context.calibration->file,
                     near ? "did you mean \"" + *near + "\"?" : "a series of that file");
      return;
    }
    series = &it->second;
    context.moved = context.moved || context.measured_on.has_value();
  }
  std::vector<double> values;
  bool all_inline = true;
  for (const ParameterInfo& info : law.parameters) {
    if (const auto it = inline_values.find(info.name); it != inline_values.end()) {
      values.push_back(it->second.value);
      continue;
    }
    all_inline = false;
    if (series != nullptr) {
      const auto renamed = names_in_series.find(info.name);
      const std::string_view wanted =
          renamed == names_in_series.end() ? info.name : std::string_view(renamed->second);
      if (const auto it = series->parameters.find(wanted); it != series->parameters.end()) {
        values.push_back(moved_value(it->second.value, info, context));
        continue;
      }
    }
    if (info.lower == info.upper) {  // a term that this law does not have
      values.push_back(info.start);
      continue;
    }
    object.problem("parameters", "has no \"" + std::string(info.name) + "\"",
                   "inline, or in the named calibration series");
  }
  if (values.size() != law.parameters.size()) return;
  binding.cost = law.make(values);
  if (series != nullptr) {
    const double moved = context.measured_on ? kTransferLogSigma : 0.0;
    binding.log_sigma = std::max(series->log_sigma, moved);
    if (!all_inline) binding.basis = Basis::kFitted;
    if (binding.source.empty()) binding.source = series->source;
  }
}

/// A table of this GPU's own measurements; never another GPU's.
void read_op_table(JsonObject& object, KernelBinding& binding, Context& context) {
  const std::string op = object.string("table");
  if (context.only_checking) return;
  if (!context.op_tables) {
    const std::string path = op_tables_path(context.hardware.name);
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) {
      if (!context.said_uncalibrated) {
        object.problem("table", "no op tables are shipped for " + context.hardware.name,
                       "a GPU on which `replay step --alone` has run");
      }
      context.said_uncalibrated = true;
      return;
    }
    context.op_tables = load_op_tables(path);
  }
  const auto it = context.op_tables->tables.find(op);
  if (it == context.op_tables->tables.end()) {
    object.problem("table", "\"" + op + "\" is not in " + context.op_tables->file,
                   "an op of that file");
    return;
  }
  binding.cost = TableCost{it->second};
  binding.log_sigma = it->second->log_sigma;
  binding.sigma_seconds = it->second->sigma_seconds;
  binding.basis = Basis::kMeasured;
  if (binding.source.empty()) binding.source = it->second->source;
}

KernelBinding read_binding(JsonObject& object, Context& context) {
  constexpr std::array<std::string_view, 5> kBases{"datasheet", "measured", "fitted", "derived",
                                                   "assumed"};
  KernelBinding binding;
  binding.kernel = object.string("kernel");
  binding.source = object.string_or("source", "");
  object.ignore("note");
  binding.basis = static_cast<Basis>(
      object.choice_or("basis", kBases, static_cast<std::size_t>(Basis::kAssumed)));
  binding.launches = object.number_or("launches", kNonNegative, 1.0);
  binding.law = object.string("law");
  if (binding.law == "fused") {
    binding.fused_into = object.string("fused_into");
    binding.launches = 0.0;
    return binding;
  }
  if (binding.law == "op_table") {
    read_op_table(object, binding, context);
    return binding;
  }
  const LawInfo* law = find_law(binding.law);
  if (law == nullptr) {
    std::string allowed = "fused, op_table";
    for (const LawInfo& info : law_table()) allowed += ", " + std::string(info.name);
    object.problem("law", "is " + found(binding.law), allowed);
    object.ignore("parameters");
    object.ignore("parameter_names");
    object.ignore("calibration");
    object.ignore("log_sigma");
    return binding;
  }
  read_parameters(object, *law, binding, context);
  if (object.has("log_sigma") || !object.has("calibration")) {
    binding.log_sigma = object.number("log_sigma", Range{0.0, 5.0});
  } else {
    object.ignore("log_sigma");
  }
  if (binding.source.empty()) object.problem("source", "is missing", "where the cost comes from");
  return binding;
}

bool is_slot_or_op(const std::string& name) {
  for (int i = 0; i < kNumOpIds; ++i) {
    const auto id = static_cast<OpId>(i);
    if (name == name_of(id) || name == slot_of(id)) return true;
  }
  return false;
}

/// Slot or op name -> the JSON of its binding with the file and pointer it stands at.
struct Placed {
  json value;
  std::string file;
  std::string pointer;
};
using BindingMap = std::map<std::string, Placed, std::less<>>;

void collect_bindings(JsonObject& kernels, BindingMap& into) {
  kernels.each_member([&](const std::string& name, const json& value) {
    if (!is_slot_or_op(name)) {
      kernels.problem(name, "is not an op or a slot of the step graph",
                      "e.g. fp8_gemm, attention, routed_experts, wqkv_a");
      return;
    }
    into.insert_or_assign(name, Placed{value, kernels.file(), kernels.pointer_to(name)});
  });
}

/// Replaces "SET" by that set's binding of `name`, and "SET#VARIANT" by one of its variants.
bool take_from_other_set(const std::string& name, Placed& placed,
                         std::vector<InputProblem>& problems) {
  const std::string wanted = placed.value.get<std::string>();
  const std::size_t hash = wanted.find('#');
  const std::string other = resolve("kernels", wanted.substr(0, hash), placed.file, placed.pointer);
  const json document = read_json_file(other);
  const std::string pointer =
      hash == std::string::npos ? "/kernels/" + name : "/variants/" + wanted.substr(hash + 1);
  const json* found_binding = nullptr;
  if (const auto group = document.find(hash == std::string::npos ? "kernels" : "variants");
      group != document.end() && group->is_object()) {
    const auto binding = group->find(hash == std::string::npos ? name : wanted.substr(hash + 1));
    if (binding != group->end()) found_binding = &*binding;
  }
  if (found_binding == nullptr) {
    problems.push_back({placed.file, placed.pointer,
                        "\"" + wanted + "\": " + other + " has nothing at " + pointer,
                        "SET for its own " + name + ", or SET#VARIANT"});
    return false;
  }
  placed = Placed{*found_binding, other, pointer};
  return true;
}

void apply_changes(const KernelSetChanges& changes, BindingMap& bindings, KernelTraits& traits,
                   std::vector<InputProblem>& problems) {
  if (changes.traits.is_object()) {
    JsonObject object(changes.traits, changes.file, "/traits", problems);
    read_traits(object, traits);
    object.reject_unknown();
  }
  if (!changes.kernels.is_object()) return;
  BindingMap changed;
  JsonObject object(changes.kernels, changes.file, "/kernels", problems);
  collect_bindings(object, changed);
  for (auto& [name, placed] : changed) {
    if (placed.value.is_string() && !take_from_other_set(name, placed, problems)) continue;
    // A changed slot replaces the set's own bindings of that slot's ops.
    for (int i = 0; i < kNumOpIds; ++i) {
      const auto id = static_cast<OpId>(i);
      if (name == slot_of(id) && name != name_of(id)) bindings.erase(std::string(name_of(id)));
    }
    bindings.insert_or_assign(name, placed);
  }
}

std::shared_ptr<const Calibration> calibration_of(const Hardware& hardware,
                                                  CalibrationCache* cache) {
  if (cache == nullptr) return find_calibration(hardware);
  const auto [it, fresh] = cache->try_emplace(hardware.name);
  if (fresh) it->second = find_calibration(hardware);
  return it->second;
}

/// A kernel put in an op's place does its prefill as well.
void drop_changed(const KernelSetChanges& changes, BindingMap& prefill) {
  if (!changes.kernels.is_object()) return;
  for (const auto& [name, unused] : changes.kernels.items()) {
    prefill.erase(name);
    for (int i = 0; i < kNumOpIds; ++i) {
      const auto id = static_cast<OpId>(i);
      if (name == slot_of(id)) prefill.erase(std::string(name_of(id)));
    }
  }
}

}  // namespace

KernelSet load_kernel_set(const std::string& name, const std::string& file,
                          const std::string& pointer, const Hardware& hardware,
                          const KernelSetChanges& changes, std::vector<std::string>& warnings,
                          CalibrationCache* cache) {
  const std::string path = resolve("kernels", name, file, pointer);
  const json document = read_json_file(path);
  std::vector<InputProblem> problems;
  Context context{hardware, calibration_of(hardware, cache), std::nullopt, std::nullopt, problems};
  if (context.calibration && context.calibration->hardware != hardware.name) {
    context.measured_on = load_hardware(
        resolve("hardware", context.calibration->hardware, context.calibration->file, "/hardware"));
  }
  JsonObject object(document, path, "", problems);
  throw_if_any(problems);
  KernelSet set;
  object.schema("fulcrum/kernel_set/1");
  set.name = object.string("name");
  set.label = object.string("label");
  set.architecture = object.string("architecture");
  object.ignore("source");
  object.object("traits", [&](JsonObject& traits) { read_traits(traits, set.traits); });
  object.object("host", [&](JsonObject& host) {
    const Sourced launch = host.sourced("launch_seconds", Range{0, 1e-2});
    const Sourced step = host.sourced("step_seconds", Range{0, 1.0});
    const Sourced system = host.sourced("system_log_sigma", Range{0, 2.0});
    set.host = {launch.value, step.value, system.value, launch.basis, launch.source};
  });
  BindingMap bindings;
  object.object("kernels", [&](JsonObject& kernels) { collect_bindings(kernels, bindings); });
  BindingMap prefill;
  object.optional_object("prefill",
                         [&](JsonObject& kernels) { collect_bindings(kernels, prefill); });
  // A scenario may name any of them, so a fault in one is a fault of the file.
  object.optional_object("variants", [&](JsonObject& variants) {
    variants.each_member([&](const std::string& variant, const json& value) {
      JsonObject entry(value, path, variants.pointer_to(variant), problems);
      if (!value.is_object()) return;
      context.only_checking = true;
      read_binding(entry, context);
      context.only_checking = false;
      entry.reject_unknown();
    });
  });
  object.reject_unknown();
  apply_changes(changes, bindings, set.traits, problems);
  drop_changed(changes, prefill);

  std::map<std::string, KernelBinding, std::less<>> read;
  for (const auto& [key, placed] : bindings) {
    JsonObject entry(placed.value, placed.file, placed.pointer, problems);
    if (!placed.value.is_object()) continue;
    read.emplace(key, read_binding(entry, context));
    entry.reject_unknown();
  }
  for (const auto& [key, placed] : prefill) {
    JsonObject entry(placed.value, placed.file, placed.pointer, problems);
    if (!placed.value.is_object()) continue;
    const KernelBinding binding = read_binding(entry, context);
    entry.reject_unknown();
    for (int i = 0; i < kNumOpIds; ++i) {
      const auto id = static_cast<OpId>(i);
      if (key == name_of(id) || (key == slot_of(id) && !prefill.contains(name_of(id)))) {
        set.prefill_bindings[static_cast<std::size_t>(i)] = binding;
      }
    }
  }
  for (int i = 0; i < kNumOpIds; ++i) {
    const auto id = static_cast<OpId>(i);
    auto it = read.find(name_of(id));
    if (it == read.end()) it = read.find(slot_of(id));
    if (it == read.end()) {
      problems.push_back({path, "/kernels",
                          "binds neither " + std::string(name_of(id)) + " nor its slot " +
                              std::string(slot_of(id)),
                          ""});
      continue;
    }
    set.binding(id) = it->second;
  }
  throw_if_any(problems);
  if (context.moved) {
    warnings.push_back("no calibration for " + hardware.name + ": parameters moved from " +
                       context.calibration->hardware + " through the hardware files");
  }
  return set;
}

}  // namespace fulcrum::io
