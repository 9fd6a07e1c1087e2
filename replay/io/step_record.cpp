#include "replay/io/step_record.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "replay/io/timing_json.h"

namespace fulcrum::replay {
namespace {

using Json = nlohmann::ordered_json;

Json head(const char* record, const StepPlace& place, const StepCell& cell) {
  return {{"schema", kMeasurementSchema},
          {"record", record},
          {"session", place.session},
          {"model", place.model},
          {"tensor_parallel", place.tensor_parallel},
          {"num_gpus", place.num_gpus},
          {"requests", cell.requests},
          {"draft_tokens", cell.drafts},
          {"context_tokens", cell.context},
          {"tokens", cell.tokens()}};
}

const char* status_of(const Timing& timing) {
  if (timing.throttled()) return "throttled";
  return is_noisy(timing.summary, timing.stop_reason) ? "noisy" : "ok";
}

/// Of a median, from its 95 % interval.
double standard_error(const Timing& timing) {
  return (timing.summary.ci_high_seconds - timing.summary.ci_low_seconds) / (2.0 * 1.96);
}

std::string op_name(const StepOp& op) {
  return (op.draft ? "draft." : "") + std::string(name_of(op.id));
}

}  // namespace

std::string op_alone_to_line(const StepPlace& place, const StepCell& cell, const OpAlone& op) {
  Json json = head("op_alone", place, cell);
  json["op"] = name_of(op.id);
  json["executions"] = op.executions;
  const bool throttled = op.with.throttled() || op.without.throttled();
  json["status"] = throttled ? "throttled" : status_of(op.with);
  json["seconds"] = op.seconds();
  json["seconds_standard_error"] =
      op.parts * std::hypot(standard_error(op.with), standard_error(op.without));
  json["parts"] = op.parts;
  const auto part = [&](const char* key, const Timing& timing) {
    Json entry = Json::object();
    add_timing(entry, timing);
    json[key] = entry;
  };
  part("with", op.with);
  part("without", op.without);
  part("hot", op.hot);
  return json.dump();
}

std::string step_to_line(const StepPlace& place, const StepCell& cell, const StepGraph& graph,
                         const StepMeasurement& step) {
  Json json = head("step", place, cell);
  json["side_streams"] = place.side_streams;
  const bool wrong = !step.not_finite.empty() || !step.eager_equals_graph;
  json["status"] = wrong ? "failed" : status_of(step.graph);
  json["eager_equals_graph"] = step.eager_equals_graph;
  if (!step.not_finite.empty()) json["not_finite"] = step.not_finite;
  add_timing(json, step.graph);
  if (step.eager) {
    Json eager = Json::object();
    add_timing(eager, *step.eager);
    json["eager"] = eager;
  }
  if (!step.ops.empty()) {
    json["instrumented_seconds"] = step.instrumented_seconds;
    json["event_seconds"] = step.event_seconds;
    json["added_per_launch_seconds"] = step.added_per_launch_seconds;
    Json ops = Json::array();
    for (const OpInStep& op : step.ops) {
      ops.push_back({{"op", op_name(graph.ops[op.op])},
                     {"later_pass", graph.ops[op.op].rows == Rows::kPerRequest},
                     {"executions", op.executions},
                     {"seconds", op.seconds}});
    }
    json["ops"] = ops;
  }
  Json absent = Json::array();
  for (const StepOp& op : graph.ops) {
    const std::string why = absence_of(op.id, place.num_gpus > 1);
    if (!why.empty() && !op.draft) absent.push_back({{"op", op_name(op)}, {"why", why}});
  }
  json["absent"] = absent;
  return json.dump();
}

std::string skipped_step_to_line(const StepPlace& place, const StepCell& cell,
                                 const std::string& why) {
  Json json = head("step", place, cell);
  json["side_streams"] = place.side_streams;
  json["status"] = "skipped";
  json["reason"] = why;
  return json.dump();
}

}  // namespace fulcrum::replay
