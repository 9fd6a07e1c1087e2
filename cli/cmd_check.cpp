#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/scenario_options.h"
#include "cli/table.h"
#include "model/check.h"
#include "model/errors.h"
#include "model/io/load_case.h"
#include "model/io/load_lever.h"
#include "model/io/write_validation.h"

namespace fulcrum::cli {
namespace {

/// What is checked, under a name for the output.
struct Checked {
  std::string id;
  CheckReport report;
};

void print(const std::vector<Checked>& all, const TerminalStyle& style) {
  for (const Checked& one : all) {
    std::cout << bold(std::string(name_of(one.report.verdict)), style)
              << (one.id.empty() ? "" : "  " + one.id) << '\n';
    for (const Finding& finding : one.report.findings) {
      std::cout << "  " << name_of(finding.verdict) << " (" << finding.rule << "): " << finding.text
                << '\n';
    }
  }
  if (all.size() < 2) return;
  std::map<std::string, std::size_t> counts;
  for (const Checked& one : all) ++counts[std::string(name_of(one.report.verdict))];
  std::cout << '\n';
  for (const auto& [verdict, count] : counts) std::cout << verdict << ": " << count << '\n';
}

int finish(const std::vector<Checked>& all, bool json) {
  if (json) {
    nlohmann::ordered_json out{{"schema", "fulcrum/check/1"}};
    out["results"] = nlohmann::ordered_json::array();
    for (const Checked& one : all) {
      nlohmann::ordered_json entry = io::check_json(one.report);
      entry["id"] = one.id;
      out["results"].push_back(std::move(entry));
    }
    // One result is the usual question: its verdict stands at the top as well.
    if (all.size() == 1) out["verdict"] = name_of(all.front().report.verdict);
    std::cout << out.dump(1) << '\n';
  } else {
    print(all, TerminalStyle::of_stdout());
  }
  return 0;
}

std::string id_of(const Measured& measured, std::size_t place) {
  if (!measured.result.label.empty()) return measured.result.label;
  if (!measured.result.id.empty()) return measured.result.id;
  return place == 0 ? "" : "#" + std::to_string(place);
}

Measured measured_of(const std::vector<std::string>& assignments) {
  nlohmann::json object = nlohmann::json::object();
  for (const std::string& assignment : assignments) {
    const auto [key, value] = io::split_assignment(assignment);
    const nlohmann::json parsed = nlohmann::json::parse(value, nullptr, false);
    object[key] = parsed.is_discarded() ? nlohmann::json(value) : parsed;
  }
  std::vector<std::string> unread;
  Measured measured = io::parse_measured(object, "command line", "--measured", unread);
  if (!unread.empty()) {
    throw InputError({"command line", "--measured", unread.front(),
                      "keys of a serving result, e.g. output_tokens_per_second, concurrency"});
  }
  return measured;
}

void give_load(Measured& measured, const Deployment& deployment) {
  if (!measured.result.concurrency && deployment.workload.concurrency.size() == 1) {
    measured.result.concurrency = deployment.workload.concurrency[0];
  }
}

std::vector<Checked> check_cases(const std::string& path) {
  const CaseSet set = io::load_cases(path);
  std::vector<Checked> all;
  for (const Case& one : set.cases) {
    all.push_back({one.id, check_case(one)});
  }
  for (const ExcludedCase& one : set.excluded) {
    std::vector<Finding> findings = check_arithmetic(one.measured.result);
    findings.push_back({CheckVerdict::kCannotTell, "scenario", one.why, {}, {}});
    all.push_back({one.id, report_of(std::move(findings))});
  }
  return all;
}

std::vector<Checked> check_lever(const Deployment& before, const io::ScenarioDocument& document,
                                 const std::string& name, double claim) {
  const io::LeverDocument lever = io::load_lever(name);
  std::vector<std::string> ignored;
  const Deployment after = io::resolve_scenario(io::pull(document, lever), ignored);
  std::vector<Checked> all;
  for (const double concurrency : before.workload.concurrency) {
    all.push_back({name + " at C=" + format_count(concurrency),
                   check_claim(evaluate_lever(lever.lever, before, after, concurrency), claim)});
  }
  return all;
}

}  // namespace

int run_check(const Arguments& arguments) {
  namespace po = boost::program_options;
  po::options_description options = scenario_options();
  options.add_options()("file", po::value<std::string>(),
                        "what was measured (positional): a case file, a measured object, or a "
                        "benchmark client's result")(
      "measured,m", po::value<std::vector<std::string>>()->composing(),
      "KEY=VALUE instead of a file, e.g. output_tokens_per_second=23; repeatable")(
      "against", po::value<std::string>(), "the other arm of an A/B: FILE is A, this is B")(
      "against-scenario", po::value<std::string>(), "what B ran, where it is not SCENARIO")(
      "lever", po::value<std::string>(), "with --claim: the lever that promises the gain")(
      "claim", po::value<double>(), "a promised gain, e.g. 4.5 for 4.5x");
  const HelpText help{
      "fulcrum check SCENARIO [FILE] [OPTIONS]\n       fulcrum check CASES",
      "Says whether a measurement is impossible, implausible, not comparable or plausible, and "
      "which\n"
      "term of the model would explain the gap. With --against, whether an A/B says anything "
      "about\n"
      "its lever. Given a case file alone, checks each of its cases.",
      "  fulcrum check campaign-stock -m output_tokens_per_second=23 -m concurrency=16\n"
      "  fulcrum check campaign-a A.json --against B.json --against-scenario campaign-b\n"
      "  fulcrum check campaign-stock --lever fp8_configs --claim 4.5"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"scenario", "file"}, values)) return 0;
  const bool json = values["json"].as<bool>();
  const std::string scenario = values["scenario"].as<std::string>();
  const bool has_file = values.count("file") != 0;
  const bool has_inline = values.count("measured") != 0;
  const bool has_claim = values.count("claim") != 0;
  if (has_file && has_inline) {
    throw InputError({"command line", "--measured", "stands beside FILE", "one of the two"});
  }
  if (has_claim != (values.count("lever") != 0)) {
    throw InputError({"command line", "--claim", "and --lever go together", "both or neither"});
  }
  if (!has_file && !has_inline && !has_claim) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(scenario, ignored)) {
      return finish(check_cases(scenario), json);
    }
    throw InputError(
        {"command line", "FILE", "is missing", "what was measured: FILE or --measured"});
  }
  std::vector<std::string> warnings;
  const io::ScenarioDocument document = scenario_of(values);
  const Deployment deployment = io::resolve_scenario(document, warnings);
  if (has_claim) {
    const double claim = values["claim"].as<double>();
    if (!(claim > 0.0 && claim < 1e6)) {
      throw InputError({"command line", "--claim", "is out of range", "a ratio above 0"});
    }
    return finish(check_lever(deployment, document, values["lever"].as<std::string>(), claim),
                  json);
  }
  std::vector<Measured> measured =
      has_inline ? std::vector{measured_of(values["measured"].as<std::vector<std::string>>())}
                 : io::load_measured(values["file"].as<std::string>(), warnings);
  for (Measured& one : measured) give_load(one, deployment);
  std::vector<Checked> all;
  if (values.count("against") == 0) {
    for (std::size_t i = 0; i < measured.size(); ++i) {
      all.push_back(
          {id_of(measured[i], measured.size() > 1 ? i + 1 : 0), check(deployment, measured[i])});
    }
  } else {
    io::ScenarioDocument other = document;
    if (values.count("against-scenario") != 0) {
      other = io::read_scenario(values["against-scenario"].as<std::string>());
    }
    const Deployment after = io::resolve_scenario(other, warnings);
    std::vector<Measured> second = io::load_measured(values["against"].as<std::string>(), warnings);
    for (Measured& one : second) give_load(one, after);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      // Runs of the same load belong together; else by place.
      const auto same = std::find_if(second.begin(), second.end(), [&](const Measured& m) {
        return m.result.concurrency == measured[i].result.concurrency;
      });
      if (same == second.end() && i >= second.size()) continue;
      const Measured& partner = same != second.end() ? *same : second[i];
      all.push_back({id_of(measured[i], measured.size() > 1 ? i + 1 : 0),
                     check_pair({deployment, measured[i]}, {after, partner})});
    }
  }
  if (!json) print_warnings(warnings);
  return finish(all, json);
}

}  // namespace fulcrum::cli
