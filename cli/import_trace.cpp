// Traces for `fulcrum import`: reading, the table of a step, the comparison with a scenario.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calibrate/io/import/chrome_trace.h"
#include "calibrate/io/import/detect.h"
#include "calibrate/io/import/nsys_csv.h"
#include "calibrate/io/import/nsys_sqlite.h"
#include "calibrate/io/import/profile_tables.h"
#include "calibrate/io/import/write_profile.h"
#include "calibrate/trace/compare.h"
#include "cli/import_options.h"
#include "cli/output_file.h"
#include "cli/scenario_options.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/valid_text.h"
#include "model/price.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;
using calibrate::io::Container;

std::optional<std::regex> anchor_of(const po::variables_map& values) {
  if (values.count("anchor") == 0) return std::nullopt;
  const std::string& text = values["anchor"].as<std::string>();
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw InputError({"command line", "--anchor", "is no regular expression: \"" + text + "\"",
                      "ECMAScript syntax, searched in kernel names"});
  }
}

void print_step(const calibrate::StepProfile& p, std::size_t lines, const TerminalStyle& style) {
  std::cout << bold(io::valid_utf8(p.device), style) << ": ";
  if (p.timed) {
    std::cout << p.num_steps << (p.num_steps == 1 ? " step of " : " steps of ")
              << format_seconds(p.step_seconds);
    if (p.num_steps > 1) {
      std::cout << " (5 - 95 %: " << format_seconds(p.step_p05_seconds) << " - "
                << format_seconds(p.step_p95_seconds) << ")";
    }
    if (p.num_other_steps > 0) std::cout << ", " << p.num_other_steps << " other steps left out";
    std::cout << "\n  kernels summed " << format_seconds(p.busy_sum_seconds)
              << ", some kernel runs " << format_seconds(p.busy_union_seconds) << ", idle "
              << format_seconds(p.idle_seconds) << " ("
              << format_percent(p.idle_seconds / p.step_seconds) << "), of it inside graphs "
              << format_seconds(p.idle_in_graph_seconds) << "; " << format_percent(p.graph_fraction)
              << " of launches in CUDA graphs\n";
    if (p.search.steps.empty()) {
      std::cout << "  no period found: the whole trace counts as one step (--anchor REGEX names a "
                   "kernel that runs once a step)\n";
    } else {
      std::cout << "  a step begins at "
                << (p.search.anchor_stride > 1
                        ? "every " + std::to_string(p.search.anchor_stride) + ". launch of "
                        : "")
                << io::valid_utf8(p.search.anchor.substr(0, 80)) << "\n";
    }
  } else {
    std::cout << "kernel totals over " << p.num_steps << (p.num_steps == 1 ? " step" : " steps")
              << " (--steps N), " << format_seconds(p.busy_sum_seconds) << " each\n";
  }
  const double whole = p.timed ? p.step_seconds : p.busy_sum_seconds;
  Table table({{"op", Align::kLeft},
               {"kernel", Align::kLeft, true},
               {"launches"},
               {"busy"},
               {"time"},
               {"share"},
               {"", Align::kLeft},
               {"per launch"}});
  constexpr int kBarWidth = 10;
  double rest = 0.0;
  double rest_busy = 0.0;
  double rest_launches = 0.0;
  for (std::size_t i = 0; i < p.lines.size(); ++i) {
    const calibrate::ProfileLine& line = p.lines[i];
    if (i >= lines) {
      rest += line.exposed_seconds;
      rest_busy += line.busy_seconds;
      rest_launches += line.launches;
      continue;
    }
    const double share = whole > 0.0 ? line.exposed_seconds / whole : 0.0;
    table.add({line.op, io::valid_utf8(line.kernel.substr(0, 60)), format_number(line.launches),
               format_seconds(line.busy_seconds), format_seconds(line.exposed_seconds),
               format_percent(share), bar(share, kBarWidth, style),
               format_seconds(line.launch_median_seconds)});
  }
  if (p.lines.size() > lines) {
    const double share = whole > 0.0 ? rest / whole : 0.0;
    table.add({"(others)", std::to_string(p.lines.size() - lines) + " kernels",
               format_number(rest_launches), format_seconds(rest_busy), format_seconds(rest),
               format_percent(share), bar(share, kBarWidth, style), ""});
  }
  if (p.timed) {
    const double share = whole > 0.0 ? p.idle_seconds / whole : 0.0;
    table.add({"gap", "no kernel runs", "", "", format_seconds(p.idle_seconds),
               format_percent(share), bar(share, kBarWidth, style), ""});
  }
  table.print(std::cout, style);
}

void print_unknown(const calibrate::StepProfile& p) {
  constexpr std::size_t kMost = 8;
  std::size_t num_unknown = 0;
  for (const auto& line : p.lines) num_unknown += line.op == "unknown" ? 1 : 0;
  if (num_unknown == 0) return;
  std::cout << format_percent(p.mapped_fraction) << " of kernel time is known to the rules; "
            << num_unknown << " kernels are not (--rules FILE adds rules):\n";
  std::size_t printed = 0;
  for (const auto& line : p.lines) {
    if (line.op != "unknown" || printed++ >= kMost) continue;
    std::cout << "  " << format_seconds(line.busy_seconds) << "  "
              << io::valid_utf8(line.kernel.substr(0, 100)) << "\n";
  }
}

/// The scenario a profile is held against, at the profiled concurrency.
struct Reference {
  Deployment deployment;
  PredictionPoint point;
};

Reference reference_of(const po::variables_map& values) {
  io::ScenarioDocument document = io::read_scenario(values["scenario"].as<std::string>());
  const double concurrency = values["concurrency"].as<double>();
  io::set_value(document, "/workload/concurrency", nlohmann::json::array({concurrency}));
  document.value["workload"].erase("num_prompts");
  if (values.count("set") != 0) {
    for (const std::string& assignment : values["set"].as<std::vector<std::string>>()) {
      const auto [path, text] = io::split_assignment(assignment);
      io::set_value(document, path, text);
    }
  }
  std::vector<std::string> warnings;
  Reference reference;
  reference.deployment = io::resolve_scenario(document, warnings);
  print_warnings(warnings);
  reference.point = predict(reference.deployment).points.at(0);
  if (reference.point.breakdown.empty()) {
    throw InputError({document.file, "", "does not fit in memory at this concurrency",
                      "the deployment that was profiled; --set changes the scenario"});
  }
  return reference;
}

/// The profile's kernels as tables for `fulcrum calibrate`, into --tables.
void write_tables(const std::vector<calibrate::StepProfile>& profiles, const Reference& reference,
                  const po::variables_map& values) {
  const Deployment& d = reference.deployment;
  const StepPricer pricer(d);
  StepState state;
  state.requests = std::max(1.0, reference.point.effective_batch);
  state.tokens_per_request = 1.0 + d.speculation.draft_tokens;
  state.logits_rows = state.requests * state.tokens_per_request;
  state.context = d.workload.input_tokens + d.workload.output_tokens / 2.0;
  const auto tables = calibrate::io::profile_tables(
      profiles, pricer.graph(), state,
      {.device = d.hardware.name,
       .engine = d.engine.kind == EngineKind::kSglang ? "sglang" : "vllm",
       .ranks = d.tensor_parallel});
  write_table_files(tables, values["tables"].as<std::string>());
}

void print_comparison(const std::vector<calibrate::OpComparison>& comparison,
                      const TerminalStyle& style) {
  Table table({{"op", Align::kLeft}, {"measured"}, {"predicted"}, {"pred/meas"}});
  double measured = 0.0;
  double predicted = 0.0;
  for (const calibrate::OpComparison& c : comparison) {
    measured += c.measured_seconds.value_or(0.0);
    predicted += c.predicted_seconds.value_or(0.0);
    const bool both = c.measured_seconds && c.predicted_seconds && *c.measured_seconds > 0.0;
    table.add({c.op, c.measured_seconds ? format_seconds(*c.measured_seconds) : "-",
               c.predicted_seconds ? format_seconds(*c.predicted_seconds) : "-",
               both ? format_number(*c.predicted_seconds / *c.measured_seconds) : "-"});
  }
  table.add({"step", format_seconds(measured), format_seconds(predicted),
             measured > 0.0 ? format_number(predicted / measured) : "-"});
  table.print(std::cout, style);
}

/// What several ranks say together: a collective ends for all when the last rank joins, so its time
/// on the rank that waits least is the transfer, and the rest of the others' is waiting.
void print_ranks(const std::vector<calibrate::StepProfile>& profiles) {
  double shortest = 0.0;
  double longest = 0.0;
  std::size_t num_with = 0;
  for (const calibrate::StepProfile& profile : profiles) {
    double seconds = 0.0;
    for (const auto& total : calibrate::totals_by_op(profile.lines)) {
      if (total.family == OpFamily::kCollective) seconds += total.busy_seconds;
    }
    if (seconds <= 0.0) continue;
    shortest = num_with == 0 ? seconds : std::min(shortest, seconds);
    longest = std::max(longest, seconds);
    ++num_with;
  }
  if (num_with < 2) return;
  std::cout << "\n"
            << num_with << " ranks: collectives take " << format_seconds(shortest)
            << " a step on the rank that waits least, " << format_seconds(longest)
            << " on the one that waits most\n";
}

nlohmann::ordered_json comparison_json(const std::vector<calibrate::OpComparison>& comparison) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const calibrate::OpComparison& c : comparison) {
    nlohmann::ordered_json one = {{"op", c.op}};
    if (c.measured_seconds) one["measured_seconds"] = *c.measured_seconds;
    if (c.predicted_seconds) one["predicted_seconds"] = *c.predicted_seconds;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::vector<calibrate::StepProfile> read_profiles(const std::string& file, int container,
                                                  const calibrate::TraceRules& rules,
                                                  const po::variables_map& values,
                                                  std::vector<std::string>& notes) {
  calibrate::KernelTrace trace;
  switch (static_cast<Container>(container)) {
    case Container::kSqlite:
      trace = calibrate::io::read_nsys_sqlite(file);
      break;
    case Container::kNsysCsv: {
      io::ByteSource source = open_import(file, values);
      calibrate::io::NsysCsv report = calibrate::io::read_nsys_csv(source);
      if (!report.totals.empty()) {
        const double steps = values["steps"].as<double>();
        return {calibrate::profile_totals(report.totals, rules, steps, file)};
      }
      trace = std::move(report.trace);
      break;
    }
    default: {
      io::ByteSource source = open_import(file, values);
      trace = calibrate::io::read_chrome_trace(source);
      break;
    }
  }
  notes.insert(notes.end(), trace.notes.begin(), trace.notes.end());
  if (trace.num_dropped() > 0) {
    notes.push_back(std::to_string(trace.num_dropped()) + " activities beyond the first " +
                    std::to_string(calibrate::kMaxActivities) + " left out");
  }
  std::vector<calibrate::StepProfile> profiles;
  const std::optional<std::regex> anchor = anchor_of(values);
  for (std::size_t device = 0; device < trace.devices().size(); ++device) {
    auto profile =
        calibrate::profile_device(trace, static_cast<std::uint16_t>(device), rules, anchor);
    if (profile) profiles.push_back(std::move(*profile));
  }
  return profiles;
}

int show_profiles(const std::vector<calibrate::StepProfile>& profiles, const std::string& source,
                  const std::string& rules, const std::vector<std::string>& notes,
                  const po::variables_map& values) {
  nlohmann::ordered_json document = calibrate::io::profiles_json(profiles, source, rules, notes);
  std::optional<Reference> reference;
  if (values.count("tables") != 0 && values.count("scenario") == 0) {
    throw InputError({"command line", "--tables", "needs the shapes of a scenario", "--scenario"});
  }
  if (values.count("scenario") != 0) {
    reference = reference_of(values);
    if (values.count("tables") != 0) write_tables(profiles, *reference, values);
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      document["devices"][i]["comparison"] =
          comparison_json(calibrate::compare(profiles[i], reference->point.breakdown));
    }
  }
  if (values.count("output") != 0) {
    write_file(values["output"].as<std::string>(), document.dump(1) + "\n");
  }
  for (const std::string& note : notes) std::cerr << "note: " << note << '\n';
  if (values["json"].as<bool>()) {
    std::cout << document.dump(1) << '\n';
    return 0;
  }
  const TerminalStyle style = TerminalStyle::of_stdout();
  const auto lines = static_cast<std::size_t>(values["lines"].as<unsigned>());
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    if (i > 0) std::cout << '\n';
    print_step(profiles[i], lines, style);
    print_unknown(profiles[i]);
    if (!reference) continue;
    std::cout << "\nagainst " << values["scenario"].as<std::string>()
              << " at C=" << format_count(values["concurrency"].as<double>()) << ":\n";
    print_comparison(calibrate::compare(profiles[i], reference->point.breakdown), style);
  }
  print_ranks(profiles);
  return 0;
}

}  // namespace fulcrum::cli
