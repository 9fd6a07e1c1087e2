#include "model/io/load_scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "model/acceptance.h"
#include "model/io/data_dir.h"
#include "model/io/json_reader.h"
#include "model/io/load_acceptance.h"
#include "model/io/load_hardware.h"
#include "model/io/load_kernel_set.h"
#include "model/io/load_model.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kTopologies{"pcie_switch", "dual_socket", "nvlink"};
constexpr Range kTokens{1, 1e9};
constexpr Range kConcurrency{1, 1e6};

void read_engine(JsonObject& object, EngineSettings& engine) {
  constexpr std::array<std::string_view, 2> kKinds{"sglang", "vllm"};
  engine.kind = static_cast<EngineKind>(object.choice("kind", kKinds));
  engine.memory_fraction = object.number("memory_fraction", Range{0.0, 1.0, true});
  engine.max_running_requests = object.integer("max_running_requests", Range{1, 1e6});
  engine.max_context_tokens = object.integer("max_context_tokens", kTokens);
  engine.cuda_graph = object.boolean_or("cuda_graph", true);
  engine.graph_capture_max_tokens =
      object.number_or("graph_capture_max_tokens", kNonNegative, 256.0);
  engine.chunked_prefill_tokens = object.integer("chunked_prefill_tokens", kTokens);
  engine.window_to_full_tokens =
      object.number_or("swa_full_tokens_ratio", Range{0.0, 1.0, true}, 0.1);
}

/// The shapes that turn a mean accept length into positions, when nothing else is said.
const char* default_shape(DraftMethod method) {
  return method == DraftMethod::kMtp ? "mt-bench" : "dspark-k7";
}

/// Where the positions come from: written out, a named workload, a mean, or counts of a log.
void read_acceptance(JsonObject& object, const std::string& base, Speculation& speculation) {
  const auto load = [&](const std::string& name, std::string_view key) {
    return load_acceptance(
        resolve("acceptance", name, object.file(), object.pointer_to(key), base));
  };
  int given = 0;
  for (const char* key : {"acceptance", "workload", "accept_length", "accepted_counts"}) {
    given += object.has(key) ? 1 : 0;
  }
  if (given != 1) {
    object.problem("", "gives acceptance " + std::to_string(given) + " times",
                   "one of acceptance, workload, accept_length, accepted_counts");
  }
  if (object.has("workload")) {
    const AcceptanceProfile profile = load(object.string("workload"), "workload");
    if (profile.method != speculation.method) {
      object.problem("workload",
                     "was measured with " + std::string(name_of(profile.method)) + " drafts",
                     "a workload of " + std::string(name_of(speculation.method)));
    }
    speculation.acceptance =
        acceptance_for(conditional_acceptance(profile.reached), speculation.draft_tokens);
    speculation.acceptance_standard_error =
        object.number_or("acceptance_standard_error", kFraction, profile.standard_error);
    speculation.acceptance_source = profile.description + " (" + profile.source + ")";
    object.ignore("acceptance_source");
    return;
  }
  if (object.has("accept_length")) {
    const double mean = object.number("accept_length", Range{1, 64, true});
    const AcceptanceProfile shape =
        load(object.string_or("accept_length_shape", default_shape(speculation.method)),
             "accept_length_shape");
    const auto positions = positions_from_accept_length(mean, speculation.draft_tokens,
                                                        conditional_acceptance(shape.reached));
    if (positions) {
      speculation.acceptance = *positions;
    } else {
      object.problem(
          "accept_length", "is " + std::to_string(mean),
          "less than 1 + draft_tokens = " + std::to_string(1 + speculation.draft_tokens));
    }
  } else if (object.has("accepted_counts")) {
    const auto positions =
        acceptance_from_counts(object.numbers("accepted_counts", Range{0, 1e15}));
    if (positions) {
      speculation.acceptance = *positions;
    } else {
      object.problem("accepted_counts", "counts no step", "steps that accepted 0, 1, ... K drafts");
    }
  } else {
    speculation.acceptance = object.numbers("acceptance", kFraction);
  }
  speculation.acceptance_standard_error = object.number("acceptance_standard_error", kFraction);
  speculation.acceptance_source = object.string("acceptance_source");
}

void read_speculation(JsonObject& object, const ModelConfig& model, const std::string& base,
                      Speculation& speculation, std::vector<std::string>& warnings) {
  constexpr std::array<std::string_view, 3> kMethods{"none", "mtp", "dspark"};
  const std::size_t method = object.choice("method", kMethods);
  if (method == 0) {
    // Settings of a method that is switched off stay legal, so that --set can switch it.
    object.each_member([](const std::string&, const json&) {});
    return;
  }
  speculation.method = method == 1 ? DraftMethod::kMtp : DraftMethod::kDspark;
  if (model.num_mtp_layers < 1) {
    object.problem("method", "is set but the model has no draft layer", "none");
  } else if (model.draft_method != speculation.method) {
    // Engines load the other method's drafter on such a checkpoint, and it accepts nothing.
    object.problem("method",
                   "is \"" + std::string(kMethods[method]) + "\" but " + model.name +
                       " drafts by " + std::string(name_of(model.draft_method)),
                   "none or " + std::string(name_of(model.draft_method)));
  }
  if (speculation.method == DraftMethod::kDspark) {
    const int trained = std::max(1, model.dspark_block);
    speculation.draft_tokens = object.integer_or("block", Range{1, 32}, trained);
    object.ignore("draft_tokens");
    if (speculation.draft_tokens > trained) {
      warnings.push_back("a block of " + std::to_string(speculation.draft_tokens) +
                         " is longer than the " + std::to_string(trained) +
                         " the checkpoint was trained to draft");
    }
  } else {
    speculation.draft_tokens = object.integer("draft_tokens", Range{1, 32});
    object.ignore("block");
  }
  read_acceptance(object, base, speculation);
  if (static_cast<int>(speculation.acceptance.size()) != speculation.draft_tokens) {
    object.problem(object.has("accepted_counts") ? "accepted_counts" : "acceptance",
                   "gives " + std::to_string(speculation.acceptance.size()) + " positions",
                   "one per draft token: " + std::to_string(speculation.draft_tokens));
  }
}

void read_workload(JsonObject& object, Workload& workload) {
  workload.input_tokens = object.number("input_tokens", kTokens);
  workload.output_tokens = object.number("output_tokens", kTokens);
  workload.cached_prefix_tokens = object.number_or("cached_prefix_tokens", Range{0, 1e9}, 0.0);
  workload.concurrency = object.numbers("concurrency", kConcurrency);
  for (double concurrency : workload.concurrency) {
    if (concurrency != std::floor(concurrency)) {
      object.problem("concurrency", "holds " + std::to_string(concurrency),
                     "whole numbers of requests");
    }
  }
  if (workload.concurrency.empty()) {
    object.problem("concurrency", "names no concurrency", "at least one number from 1");
  }
  if (object.has("length_ratio") && object.has("length_cv")) {
    object.problem("length_cv", "is given beside length_ratio", "one of the two");
  }
  workload.lengths = LengthSpread::log_normal(object.number_or("length_cv", Range{0, 5}, 0.0));
  const double ratio = object.number_or("length_ratio", Range{0, 1, true}, 1.0);
  if (ratio < 1.0) workload.lengths = LengthSpread::uniform(ratio);
  workload.num_prompts = object.numbers_or("num_prompts", kConcurrency, {});
  if (workload.cached_prefix_tokens >= workload.input_tokens) {
    object.problem("cached_prefix_tokens", "covers the whole prompt", "less than input_tokens");
  }
  object.ignore("note");
}

void check_parallelism(JsonObject& object, const Deployment& deployment) {
  if (const auto why = tensor_parallel_problem(deployment.model, deployment.tensor_parallel)) {
    object.problem("tensor_parallel",
                   "is " + std::to_string(deployment.tensor_parallel) + ": " + *why,
                   "a degree that divides it, e.g. 1, 2, 4 or 8");
  }
  if (deployment.num_gpus % deployment.tensor_parallel != 0) {
    object.problem("tensor_parallel",
                   "is " + std::to_string(deployment.tensor_parallel) + " on " +
                       std::to_string(deployment.num_gpus) + " GPUs",
                   "a divisor of num_gpus");
  }
  if (deployment.tensor_parallel % deployment.expert_parallel != 0) {
    object.problem("expert_parallel", "is " + std::to_string(deployment.expert_parallel),
                   "a divisor of tensor_parallel");
  }
  if (deployment.tensor_parallel > 1) {
    if (!deployment.topology) {
      object.problem("topology", "is missing", "how the GPUs of one replica are linked");
    } else if (deployment.hardware.link(*deployment.topology) == nullptr) {
      object.problem("topology",
                     "is " +
                         std::string(kTopologies[static_cast<std::size_t>(*deployment.topology)]) +
                         ", which " + deployment.hardware.name + " does not have",
                     "a topology in the \"links\" of the hardware file");
    }
  }
  const double longest = deployment.workload.input_tokens + deployment.workload.output_tokens;
  if (longest > deployment.engine.max_context_tokens) {
    object.problem("workload", "input plus output is " + std::to_string(std::llround(longest)),
                   "at most engine.max_context_tokens = " +
                       std::to_string(deployment.engine.max_context_tokens));
  }
  if (deployment.engine.max_context_tokens > deployment.model.max_position) {
    object.problem(
        "engine/max_context_tokens", "is " + std::to_string(deployment.engine.max_context_tokens),
        "at most max_position_embeddings = " + std::to_string(deployment.model.max_position));
  }
}

/// Every op must be bound to a law that can price its shape.
void check_laws(const Deployment& deployment, const std::string& file) {
  std::vector<InputProblem> problems;
  for (const StepOp& op : build_step_graph(deployment.model, deployment.graph_settings()).ops) {
    for (const bool prefill : {false, true}) {
      const std::string& name = deployment.kernels.binding(op.id, prefill).law;
      const LawInfo* law = find_law(name);
      if (law == nullptr || law->accepts(op.shape)) continue;
      problems.push_back({file, "/kernel_set",
                          "binds " + std::string(name_of(op.id)) + " to the law " + name +
                              ", which prices launches of another kind",
                          "a law for " + std::string(slot_of(op.id))});
      break;
    }
  }
  throw_if_any(problems);
}

}  // namespace

ScenarioDocument read_scenario(const std::string& name) {
  const std::string path = resolve("scenarios", name, "command line", "SCENARIO");
  return {path, read_json_file(path)};
}

std::pair<std::string, std::string> split_assignment(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError({"command line", "--set", "is \"" + assignment + "\"",
                      "PATH=VALUE, e.g. engine.cuda_graph=false"});
  }
  return {assignment.substr(0, equals), assignment.substr(equals + 1)};
}

void set_value(ScenarioDocument& document, const std::string& path, json value) {
  std::string pointer = path;
  if (!path.starts_with('/')) {
    pointer = "/" + path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
  }
  try {
    document.value[json::json_pointer(pointer)] = std::move(value);
  } catch (const json::exception&) {
    throw InputError({"command line", "--set",
                      "\"" + path + "\" does not name a place in " + document.file,
                      "a dotted path such as engine.cuda_graph, or a JSON pointer"});
  }
}

void set_value(ScenarioDocument& document, const std::string& path, const std::string& text) {
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;
  set_value(document, path, std::move(value));
}

void set_concurrency(ScenarioDocument& document, const std::vector<double>& wanted) {
  static const json::json_pointer kConcurrency("/workload/concurrency");
  static const json::json_pointer kPrompts("/workload/num_prompts");
  const json before = document.value.value(kConcurrency, json::array());
  const json prompts = document.value.value(kPrompts, json::array());
  if (!before.is_array() || !prompts.is_array()) {
    set_value(document, "/workload/concurrency", json(wanted));
    return;
  }
  json kept = json::array();
  for (double concurrency : wanted) {
    const auto at = std::find(before.begin(), before.end(), json(concurrency));
    const auto index = static_cast<std::size_t>(at - before.begin());
    if (at == before.end() || index >= prompts.size()) continue;
    kept.push_back(prompts[index]);
  }
  if (kept.size() != wanted.size()) kept = json::array();
  set_value(document, "/workload/concurrency", json(wanted));
  if (!prompts.empty()) set_value(document, "/workload/num_prompts", kept);
}

Deployment resolve_scenario(const ScenarioDocument& document, std::vector<std::string>& warnings,
                            CalibrationCache* cache) {
  std::vector<InputProblem> problems;
  JsonObject object(document.value, document.file, "", problems);
  throw_if_any(problems);
  const std::string base = std::filesystem::path(document.file).parent_path().string();

  Deployment deployment;
  object.schema("fulcrum/scenario/1");
  deployment.name = object.string("name");
  deployment.description = object.string_or("description", "");
  const std::string model = object.string("model");
  const std::string hardware = object.string("hardware");
  const std::string kernel_set = object.string("kernel_set");
  throw_if_any(problems);
  deployment.model = load_model(resolve("models", model, document.file, "/model", base));
  deployment.hardware =
      load_hardware(resolve("hardware", hardware, document.file, "/hardware", base));

  deployment.num_gpus = object.integer("num_gpus", Range{1, 1024});
  deployment.tensor_parallel = object.integer("tensor_parallel", Range{1, 64});
  deployment.expert_parallel = object.integer_or("expert_parallel", Range{1, 64}, 1);
  if (object.has("topology")) {
    deployment.topology = static_cast<Topology>(object.choice("topology", kTopologies));
  }
  object.object("engine", [&](JsonObject& engine) { read_engine(engine, deployment.engine); });
  object.object("speculation", [&](JsonObject& speculation) {
    read_speculation(speculation, deployment.model, base, deployment.speculation, warnings);
  });
  object.optional_object("routing", [&](JsonObject& routing) {
    constexpr std::array<std::string_view, 2> kRoutings{"uniform", "power_law"};
    deployment.routing =
        routing.choice("distribution", kRoutings) == 0 ? Routing::kUniform : Routing::kPowerLaw;
    deployment.power_law_alpha = routing.number_or("power_law_alpha", Range{0, 4}, 0.0);
    deployment.neighbour_correlation =
        routing.number_or("neighbour_correlation", Range{0, 0.99}, 0.0);
    routing.ignore("source");
  });
  object.object("workload",
                [&](JsonObject& workload) { read_workload(workload, deployment.workload); });
  KernelSetChanges changes{document.file, json(), json()};
  if (const json* kernels = object.raw("kernels")) changes.kernels = *kernels;
  if (const json* traits = object.raw("traits")) changes.traits = *traits;
  object.reject_unknown();
  check_parallelism(object, deployment);
  throw_if_any(problems);
  deployment.kernels = load_kernel_set(kernel_set, document.file, "/kernel_set",
                                       deployment.hardware, changes, warnings, cache);
  const std::string architecture = "sm_" + deployment.hardware.compute_capability;
  const std::string wanted = deployment.kernels.architecture;
  std::string have;
  for (char c : architecture) {
    if (c != '.') have += c;
  }
  // sm_121 runs sm_120 kernels of the same family; otherwise a set is for its architecture only.
  if (have.substr(0, have.size() - 1) != wanted.substr(0, wanted.size() - 1)) {
    throw InputError({document.file, "/kernel_set",
                      "is \"" + kernel_set + "\" for " + wanted + ", but " +
                          deployment.hardware.name + " is " + have,
                      "a kernel set of that architecture"});
  }
  check_laws(deployment, document.file);
  return deployment;
}

}  // namespace fulcrum::io
