#include <cmath>
#include <iostream>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/scenario_options.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/rank_levers.h"
#include "model/io/write_results.h"

namespace fulcrum::cli {
namespace {

std::string effort_text(double minutes) {
  constexpr double kMinutesPerHour = 60.0;
  constexpr double kMinutesPerWorkday = 8.0 * kMinutesPerHour;
  if (minutes >= kMinutesPerWorkday) return format_number(minutes / kMinutesPerWorkday) + " days";
  if (minutes >= 2.0 * kMinutesPerHour) return format_number(minutes / kMinutesPerHour) + " h";
  return format_number(minutes) + " min";
}

std::string ratio_text(double ratio) { return format_number(ratio) + "x"; }

/// A line of names, broken at the terminal's width.
void print_names(const std::string& title, const std::vector<std::string>& names,
                 const TerminalStyle& style) {
  std::string line = title;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i] + (i + 1 < names.size() ? "," : "");
    if (static_cast<int>(line.size() + name.size()) + 1 > style.width) {
      std::cout << line << '\n';
      line = "   ";
    }
    line += " " + name;
  }
  std::cout << line << '\n';
}

void print_portfolio(const io::LeverPortfolio& plan, const TerminalStyle& style) {
  std::cout << "best within " << effort_text(plan.budget_minutes) << ": ";
  if (plan.names.empty()) {
    std::cout << "nothing that helps fits\n";
    return;
  }
  std::cout << ratio_text(plan.gain_ratio.p50) << " (" << ratio_text(plan.gain_ratio.p05) << " - "
            << ratio_text(plan.gain_ratio.p95) << ") in "
            << effort_text(plan.portfolio.effort_minutes) << ", recomputed together ("
            << plan.portfolio.sets_priced << " sets priced)\n";
  Table table({{"then pull", Align::kLeft}, {"adds"}, {"tok/s"}, {"effort"}});
  double before = plan.portfolio.base_value;
  for (std::size_t i = 0; i < plan.names.size(); ++i) {
    const PortfolioStep& step = plan.portfolio.steps[i];
    table.add({plan.names[i], ratio_text(step.value / before), format_number(step.value),
               effort_text(step.effort_minutes)});
    before = step.value;
  }
  table.print(std::cout, style);
}

void print_results(const std::vector<LeverResult>& results, const TerminalStyle& style) {
  std::vector<std::string> without_effect;
  std::vector<std::string> do_not_fit;
  Table table({{"lever", Align::kLeft, true},
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
      do_not_fit.push_back(r.name);
      continue;
    }
    if (r.gain_ratio.p05 == 1.0 && r.gain_ratio.p95 == 1.0) {
      without_effect.push_back(r.name);
      continue;
    }
    table.add({r.name, ratio_text(r.gain_ratio.p50),
               ratio_text(r.gain_ratio.p05) + " - " + ratio_text(r.gain_ratio.p95),
               ratio_text(r.ceiling_ratio), effort_text(r.effort_minutes),
               format_percent(r.gain_per_hour), repeats, std::string(name_of(r.verdict)),
               r.reason});
  }
  table.print(std::cout, style);
  if (!without_effect.empty()) print_names("no effect here:", without_effect, style);
  if (!do_not_fit.empty()) print_names("would not fit in memory:", do_not_fit, style);
}

}  // namespace

int run_levers(const Arguments& arguments) {
  namespace po = boost::program_options;
  po::options_description options = scenario_options();
  options.add_options()("lever,l", po::value<std::vector<std::string>>()->composing(),
                        "only this lever (a name in data/levers or a .json file); repeatable")(
      "pairs", po::bool_switch(), "also every pair, recomputed together")(
      "budget-hours", po::value<double>(),
      "also the best set of levers that this many hours of work can pay for");
  const HelpText help{
      "fulcrum levers [SCENARIO] [OPTIONS]",
      "Ranks what could be done: predicted gain in output tokens/s, the ceiling if the part it "
      "acts\n"
      "on took no time at all (Amdahl, at the median step; a gain's interval may reach past it "
      "where\n"
      "the part's own share is uncertain), effort, A/B repeats needed to see it, and whether to do "
      "it.",
      "  fulcrum levers campaign-stock --concurrency 1,16 --lever fp8_configs --lever mtp1 "
      "--pairs\n"
      "  fulcrum levers campaign-stock --concurrency 16 --budget-hours 8"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"scenario"}, values)) return 0;

  std::vector<std::string> warnings;
  std::vector<std::string> named;
  if (values.count("lever") != 0) named = values["lever"].as<std::vector<std::string>>();
  io::LeverRanking ranking(scenario_of(values), named, warnings);
  const Deployment& before = ranking.before();

  std::optional<double> budget_minutes;
  if (values.count("budget-hours") != 0) {
    const double hours = values["budget-hours"].as<double>();
    if (!(hours > 0.0) || !std::isfinite(hours)) {
      throw InputError({"command line", "--budget-hours", "is " + format_number(hours),
                        "hours of work above 0"});
    }
    budget_minutes = 60.0 * hours;
  }

  const TerminalStyle style = TerminalStyle::of_stdout();
  const bool json = values["json"].as<bool>();
  std::vector<LeverResult> all;
  std::vector<io::LeverPortfolio> portfolios;
  for (double concurrency : before.workload.concurrency) {
    const std::vector<LeverResult> results = ranking.at(concurrency, values["pairs"].as<bool>());
    if (!json) {
      const Throughput now = closed_loop_throughput(before, concurrency);
      std::cout << bold(before.name + " at C=" + format_count(concurrency) + ": " +
                            format_number(now.output_tokens_per_second) + " tok/s now",
                        style)
                << '\n';
      print_results(results, style);
    }
    if (budget_minutes) {
      portfolios.push_back(ranking.plan(*budget_minutes, concurrency));
      if (!json) {
        std::cout << '\n';
        print_portfolio(portfolios.back(), style);
      }
    }
    if (!json) std::cout << '\n';
    all.insert(all.end(), results.begin(), results.end());
  }
  if (json) {
    std::cout << io::levers_to_json(before.name, all, portfolios, warnings).dump(1) << '\n';
    return 0;
  }
  std::cout.flush();
  print_warnings(warnings);
  return 0;
}

}  // namespace fulcrum::cli
