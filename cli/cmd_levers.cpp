#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/scenario_options.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/load_lever.h"
#include "model/io/write_results.h"

namespace fulcrum::cli {
namespace {

struct PulledLever {
  io::LeverDocument document;
  Deployment after;
};

/// Levers that do not apply to the scenario (another architecture, or nothing changes) are told,
/// not dropped in silence.
std::vector<PulledLever> pull_levers(const std::vector<std::string>& names, bool named_by_user,
                                     const io::ScenarioDocument& scenario, const Deployment& before,
                                     std::vector<std::string>& warnings) {
  std::vector<PulledLever> pulled;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) continue;
    io::LeverDocument lever = io::load_lever(name);
    if (!lever.architecture.empty() && lever.architecture != before.kernels.architecture) {
      if (named_by_user) {
        throw InputError({"command line", "--lever",
                          "\"" + name + "\" is for " + lever.architecture + ", the scenario for " +
                              before.kernels.architecture,
                          ""});
      }
      continue;
    }
    const io::ScenarioDocument changed = io::pull(scenario, lever);
    if (changed.value == scenario.value) {
      warnings.push_back(name + ": the scenario already has it");
      continue;
    }
    std::vector<std::string> ignored;
    try {
      Deployment after = io::resolve_scenario(changed, ignored);
      pulled.push_back({std::move(lever), std::move(after)});
    } catch (const InputError& error) {
      // The scenario alone is sound, so it is the lever that does not apply to it.
      const std::string why = name + " does not apply to this scenario: " + error.what();
      if (named_by_user) throw InputError({"command line", "--lever", why, ""});
      warnings.push_back(why);
    }
  }
  return pulled;
}

/// Every pair of levers at one concurrency, priced together.
std::vector<LeverResult> evaluate_pairs(const std::vector<PulledLever>& levers,
                                        const io::ScenarioDocument& scenario,
                                        const Deployment& before, double concurrency) {
  std::vector<LeverResult> results;
  for (std::size_t i = 0; i < levers.size(); ++i) {
    for (std::size_t j = i + 1; j < levers.size(); ++j) {
      std::vector<std::string> ignored;
      const io::ScenarioDocument changed =
          io::pull(io::pull(scenario, levers[i].document), levers[j].document);
      const Deployment after = io::resolve_scenario(changed, ignored);
      Lever both = levers[i].document.lever;
      const Lever& other = levers[j].document.lever;
      both.name += " + " + other.name;
      both.title += "; " + other.title;
      both.effort_minutes += other.effort_minutes;
      both.claimed_gain_ratio.reset();
      both.ceiling.no_gap = both.ceiling.no_gap || other.ceiling.no_gap;
      both.ceiling.accept_all_drafts_free =
          both.ceiling.accept_all_drafts_free || other.ceiling.accept_all_drafts_free;
      both.ceiling.free_ops.insert(both.ceiling.free_ops.end(), other.ceiling.free_ops.begin(),
                                   other.ceiling.free_ops.end());
      results.push_back(evaluate_lever(both, before, after, concurrency));
    }
  }
  return results;
}

void sort_by_gain(std::vector<LeverResult>& results) {
  std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) {
    return a.gain_ratio.p50 > b.gain_ratio.p50;
  });
}

std::string effort_text(double minutes) {
  constexpr double kMinutesPerHour = 60.0;
  constexpr double kMinutesPerWorkday = 8.0 * kMinutesPerHour;
  if (minutes >= kMinutesPerWorkday) return format_number(minutes / kMinutesPerWorkday) + " days";
  if (minutes >= 2.0 * kMinutesPerHour) return format_number(minutes / kMinutesPerHour) + " h";
  return format_number(minutes) + " min";
}

std::string ratio_text(double ratio) { return format_number(ratio) + "x"; }

void print_results(const std::vector<LeverResult>& results, const TerminalStyle& style) {
  Table table({{"lever", Align::kLeft},
               {"gain"},
               {"5 - 95 %", Align::kLeft},
               {"ceiling"},
               {"effort"},
               {"gain/hour"},
               {"repeats"},
               {"verdict", Align::kLeft},
               {"reason", Align::kLeft, true}});
  for (const LeverResult& r : results) {
    constexpr double kTooMany = 1000.0;
    std::string repeats = "-";
    if (r.repeats_to_see) {
      repeats =
          *r.repeats_to_see > kTooMany ? ">1000" : std::to_string(std::lround(*r.repeats_to_see));
    }
    if (r.gain_ratio.p50 <= 0.0) {
      table.add({r.name, "-", "-", "-", effort_text(r.effort_minutes), "-", "-",
                 std::string(name_of(r.verdict)), r.reason});
      continue;
    }
    table.add({r.name, ratio_text(r.gain_ratio.p50),
               ratio_text(r.gain_ratio.p05) + " - " + ratio_text(r.gain_ratio.p95),
               ratio_text(r.ceiling_ratio), effort_text(r.effort_minutes),
               format_percent(r.gain_per_hour), repeats, std::string(name_of(r.verdict)),
               r.reason});
  }
  table.print(std::cout, style);
}

}  // namespace

int run_levers(const Arguments& arguments) {
  namespace po = boost::program_options;
  po::options_description options = scenario_options();
  options.add_options()("lever,l", po::value<std::vector<std::string>>()->composing(),
                        "only this lever (a name in data/levers or a .json file); repeatable")(
      "pairs", po::bool_switch(), "also every pair, recomputed together");
  const HelpText help{
      "fulcrum levers [SCENARIO] [OPTIONS]",
      "Ranks what could be done: predicted gain in output tokens/s, the ceiling if the part it "
      "acts\n"
      "on took no time at all (Amdahl, at the median step; a gain's interval may reach past it "
      "where\n"
      "the part's own share is uncertain), effort, A/B repeats needed to see it, and whether to do "
      "it.",
      "  fulcrum levers campaign-stock --concurrency 1,16 --lever fp8_configs --lever mtp1 "
      "--pairs"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"scenario"}, values)) return 0;

  std::vector<std::string> warnings;
  const io::ScenarioDocument scenario = scenario_of(values);
  const Deployment before = io::resolve_scenario(scenario, warnings);
  const bool named = values.count("lever") != 0;
  const std::vector<std::string> names =
      named ? values["lever"].as<std::vector<std::string>>() : io::lever_names();
  const std::vector<PulledLever> levers = pull_levers(names, named, scenario, before, warnings);

  const TerminalStyle style = TerminalStyle::of_stdout();
  const bool json = values["json"].as<bool>();
  std::vector<LeverResult> all;
  for (double concurrency : before.workload.concurrency) {
    std::vector<LeverResult> results;
    for (const PulledLever& lever : levers) {
      results.push_back(evaluate_lever(lever.document.lever, before, lever.after, concurrency));
    }
    if (values["pairs"].as<bool>()) {
      for (LeverResult& pair : evaluate_pairs(levers, scenario, before, concurrency)) {
        results.push_back(std::move(pair));
      }
    }
    sort_by_gain(results);
    if (!json) {
      const Throughput now = closed_loop_throughput(before, concurrency);
      std::cout << bold(before.name + " at C=" + format_count(concurrency) + ": " +
                            format_number(now.output_tokens_per_second) + " tok/s now",
                        style)
                << '\n';
      print_results(results, style);
      std::cout << '\n';
    }
    all.insert(all.end(), results.begin(), results.end());
  }
  if (json) {
    std::cout << io::levers_to_json(before.name, all, warnings).dump(1) << '\n';
    return 0;
  }
  std::cout.flush();
  print_warnings(warnings);
  return 0;
}

}  // namespace fulcrum::cli
