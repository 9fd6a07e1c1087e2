// Levers, explanations and simulation: computed without the GIL, handed over as the JSON that the
// command line prints, so both sides say the same.
#include <pybind11/stl.h>

#include <iterator>
#include <optional>

#include "model/errors.h"
#include "model/explain_speculation.h"
#include "model/explain_step.h"
#include "model/io/json_reader.h"
#include "model/io/load_case.h"
#include "model/io/load_trace.h"
#include "model/io/rank_levers.h"
#include "model/io/serving_result_file.h"
#include "model/io/write_explanations.h"
#include "model/io/write_results.h"
#include "model/io/write_validation.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace fulcrum::python {
namespace {

using Release = py::gil_scoped_release;

std::string levers_text(const Scenario& scenario, const std::vector<std::string>& names,
                        const std::vector<double>& concurrency, bool pairs,
                        std::optional<double> budget_minutes) {
  const Release release;
  std::vector<std::string> warnings;
  io::LeverRanking ranking(scenario.document, names, warnings);
  std::vector<LeverResult> all;
  std::vector<io::LeverPortfolio> portfolios;
  for (double c : at_concurrency(scenario, concurrency).workload.concurrency) {
    const std::vector<LeverResult> results = ranking.at(c, pairs);
    all.insert(all.end(), results.begin(), results.end());
    if (budget_minutes) portfolios.push_back(ranking.plan(*budget_minutes, c));
  }
  return io::levers_to_json(scenario.deployment.name, all, portfolios, warnings).dump();
}

std::vector<std::pair<double, std::string>> step_texts(const Scenario& scenario,
                                                       const std::vector<double>& concurrency) {
  const Release release;
  std::vector<std::pair<double, std::string>> out;
  for (const PredictionPoint& point : predict(at_concurrency(scenario, concurrency)).points) {
    if (point.breakdown.empty()) continue;
    out.emplace_back(point.concurrency, io::to_json(step_waterfall(point)).dump());
  }
  return out;
}

std::pair<std::vector<std::string>, std::string> speculation_texts(
    const Scenario& with, const std::optional<Scenario>& against,
    const std::vector<double>& concurrency) {
  const Release release;
  if (with.deployment.speculation.draft_tokens == 0) {
    throw InputError({"call", "explain_speculation",
                      "\"" + with.deployment.name + "\" has no speculation",
                      "a scenario with drafts, e.g. campaign-b"});
  }
  const Deployment without = against ? against->deployment : without_speculation(with.deployment);
  std::vector<SpeculationPoint> points;
  for (double c : at_concurrency(with, concurrency).workload.concurrency) {
    points.push_back(explain_speculation(without, with.deployment, c));
  }
  std::vector<std::string> texts;
  for (const SpeculationPoint& point : points) texts.push_back(io::to_json(point).dump());
  return {texts, io::to_json(crossover(points)).dump()};
}

std::string target_text(const Scenario& scenario, double tokens_per_second) {
  if (!(tokens_per_second > 0.0 && tokens_per_second <= 1e9)) {
    throw InputError({"call", "tokens_per_second", "is out of range", "above 0, at most 1e9"});
  }
  return io::to_json(explain_target(scenario.deployment, tokens_per_second)).dump();
}

std::string simulate_text(const Scenario& scenario, double concurrency, double requests_per_second,
                          const std::string& trace_file, std::int64_t num_requests,
                          std::optional<double> length_ratio, const std::string& policy,
                          std::uint64_t seed) {
  const Release release;
  const auto refuse = [](const char* name, const char* allowed) {
    return InputError({"call", name, "is out of range", allowed});
  };
  if (num_requests < 1 || num_requests > 10'000'000) throw refuse("num_requests", "1 to 10000000");
  if (length_ratio && !(*length_ratio > 0.0 && *length_ratio <= 1.0)) {
    throw refuse("length_ratio", "above 0, at most 1");
  }
  if (policy != "" && policy != "mixed" && policy != "prefill_first") {
    throw refuse("policy", "prefill_first, mixed, or none for the engine's own");
  }
  const Deployment& deployment = scenario.deployment;
  Traffic traffic;
  traffic.input_tokens = deployment.workload.input_tokens;
  traffic.output_tokens = deployment.workload.output_tokens;
  traffic.lengths =
      length_ratio ? LengthSpread::uniform(*length_ratio) : deployment.workload.lengths;
  traffic.num_requests = num_requests;
  std::vector<TraceRequest> trace;
  if (!trace_file.empty()) {
    trace = io::load_trace(trace_file);
    traffic.kind = Traffic::Kind::kTrace;
    traffic.trace = trace;
  } else if (requests_per_second > 0.0) {
    if (requests_per_second > 1e6) throw refuse("requests_per_second", "up to 1e6");
    traffic.kind = Traffic::Kind::kPoisson;
    traffic.requests_per_second = requests_per_second;
  } else {
    if (!(concurrency >= 1.0 && concurrency <= 1e6)) throw refuse("concurrency", "1 to 1000000");
    traffic.concurrency = concurrency;
  }
  SimulationOptions options;
  options.seed = seed;
  options.policy = policy.empty()      ? default_policy(deployment.engine.kind)
                   : policy == "mixed" ? SchedulerPolicy::kMixed
                                       : SchedulerPolicy::kPrefillFirst;
  if (options.policy == SchedulerPolicy::kMixed) options.reserved_output_fraction = 0.0;
  return io::to_json(simulate(deployment, traffic, options)).dump();
}

std::string validate_text(const std::vector<std::string>& files) {
  const Release release;
  CaseSet set;
  std::vector<Score> scores;
  for (const std::string& file : files) {
    CaseSet one = io::load_cases(file);
    std::move(one.cases.begin(), one.cases.end(), std::back_inserter(set.cases));
    std::move(one.excluded.begin(), one.excluded.end(), std::back_inserter(set.excluded));
    std::move(one.warnings.begin(), one.warnings.end(), std::back_inserter(set.warnings));
  }
  for (const Case& one : set.cases) {
    for (Score& score : score_case(one)) scores.push_back(std::move(score));
  }
  return io::validation_json(scores, set).dump();
}

/// Measurements from a file, or from the JSON text of one "measured" object.
std::vector<Measured> measured_of(const std::string& path, const std::string& text,
                                  std::vector<std::string>& warnings) {
  if (!path.empty()) return io::load_measured(path, warnings);
  return {io::parse_measured(io::parse_json(text, "measured"), "measured", "", warnings)};
}

std::vector<std::string> check_texts(const Scenario& scenario, const std::string& path,
                                     const std::string& text) {
  const Release release;
  std::vector<std::string> warnings;
  std::vector<std::string> out;
  for (const Measured& one : measured_of(path, text, warnings)) {
    out.push_back(io::check_json(check(scenario.deployment, one)).dump());
  }
  return out;
}

std::string check_pair_text(const Scenario& a, const std::string& measured_a, const Scenario& b,
                            const std::string& measured_b) {
  const Release release;
  std::vector<std::string> warnings;
  const Measured first = measured_of("", measured_a, warnings).front();
  const Measured second = measured_of("", measured_b, warnings).front();
  return io::check_json(check_pair({a.deployment, first}, {b.deployment, second})).dump();
}

std::string import_text(const std::string& file) {
  const Release release;
  return io::serving_results_json(io::read_serving_results(file), file).dump();
}

}  // namespace

void bind_analyses(py::module_& module) {
  module.def("_levers", &levers_text);
  module.def("_explain_step", &step_texts);
  module.def("_explain_speculation", &speculation_texts);
  module.def("_explain_target", &target_text, py::call_guard<Release>());
  module.def("_simulate", &simulate_text);
  module.def("_validate", &validate_text);
  module.def("_check", &check_texts);
  module.def("_check_pair", &check_pair_text);
  module.def("_import", &import_text);
}

}  // namespace fulcrum::python
