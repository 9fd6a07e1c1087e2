#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/data_dir.h"
#include "model/io/load_case.h"
#include "model/io/write_validation.h"

namespace fulcrum::cli {
namespace {

constexpr int kBoundMissed = 1;

std::vector<std::string> shipped_case_files() {
  std::vector<std::string> files;
  const std::filesystem::path folder = std::filesystem::path(io::data_dir()) / "field";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw InputError({folder.string(), "", "holds no case file", "FILE ..."});
  return files;
}

/// A limit on one figure of the summary: errors from above, coverage from below.
struct Bound {
  std::string figure;
  double limit = 0.0;
};

Bound parse_bound(const std::string& text) {
  const std::size_t equals = text.find('=');
  Bound bound{text.substr(0, equals), 0.0};
  const std::vector<std::string> known{"mape",        "median_ape", "p90_ape",   "bias",
                                       "shape_error", "coverage",   "tpot_mape", "error_points"};
  if (equals == std::string::npos ||
      std::find(known.begin(), known.end(), bound.figure) == known.end()) {
    throw InputError({"command line", "--bound", "is \"" + text + "\"",
                      "mape=0.1, median_ape, p90_ape, bias, shape_error, coverage, tpot_mape, or "
                      "with --gain error_points"});
  }
  constexpr double kMost = 1000.0;
  bound.limit = parse_numbers(text.substr(equals + 1), "--bound", 0.0, kMost).front();
  return bound;
}

std::optional<double> figure_of(const Bound& bound, const std::optional<ScoreSummary>& all,
                                const std::optional<ScoreSummary>& tpot) {
  if (bound.figure == "tpot_mape") return tpot ? std::optional(tpot->mape) : std::nullopt;
  if (!all) return std::nullopt;
  if (bound.figure == "mape") return all->mape;
  if (bound.figure == "median_ape") return all->median_ape;
  if (bound.figure == "p90_ape") return all->p90_ape;
  if (bound.figure == "bias") return std::abs(all->bias);
  if (bound.figure == "shape_error") return all->shape_error;
  return all->coverage;
}

/// Prints what misses; a figure that cannot be had misses its bound.
bool meets(const Bound& bound, const std::optional<double>& figure) {
  const bool from_below = bound.figure == "coverage";
  const bool ok = figure && (from_below ? *figure >= bound.limit : *figure <= bound.limit);
  if (!ok) {
    std::cerr << "bound missed: " << bound.figure << " is "
              << (figure ? format_number(*figure) : "unknown") << ", "
              << (from_below ? "at least " : "at most ") << bound.limit << " was asked\n";
  }
  return ok;
}

std::string value_text(MeasuredQuantity quantity, double value) {
  return quantity == MeasuredQuantity::kThroughput ? format_number(value) : format_seconds(value);
}

void print_scores(const std::vector<Score>& scores, const TerminalStyle& style) {
  Table table({{"case", Align::kLeft, true},
               {"C"},
               {"quantity", Align::kLeft},
               {"predicted"},
               {"5 - 95 %", Align::kLeft},
               {"measured"},
               {"error"},
               {"in", Align::kLeft},
               {"kernel set", Align::kLeft}});
  for (const Score& s : scores) {
    const double error = std::exp(s.log_error) - 1.0;
    table.add(
        {s.id, format_count(s.concurrency), std::string(name_of(s.quantity)),
         value_text(s.quantity, s.predicted.p50),
         value_text(s.quantity, s.predicted.p05) + " - " + value_text(s.quantity, s.predicted.p95),
         value_text(s.quantity, s.measured), (error > 0 ? "+" : "") + format_percent(error),
         std::string(s.covered ? "yes" : "no") + (s.does_not_fit ? " (does not fit)" : ""),
         s.kernel_set});
  }
  table.print(std::cout, style);
}

void add_summary(Table& table, const std::string& key, const std::string& value,
                 const ScoreSummary& s) {
  table.add({key, value, format_count(static_cast<double>(s.n)), format_percent(s.mape),
             format_percent(s.median_ape), (s.bias > 0 ? "+" : "") + format_percent(s.bias),
             s.shape_error ? format_percent(*s.shape_error) : "-", format_percent(s.coverage)});
}

void print_summaries(const std::vector<Score>& scores, const std::vector<Score>& counted,
                     const TerminalStyle& style) {
  Table table({{"", Align::kLeft},
               {"", Align::kLeft},
               {"n"},
               {"MAPE"},
               {"median"},
               {"bias"},
               {"shape"},
               {"coverage"}});
  if (const auto all = summarise(counted)) add_summary(table, "all but TTFT", "", *all);
  for (const char* key : {"quantity", "split", "kernel_set", "speculation", "hardware"}) {
    const bool every = std::string(key) == "quantity";
    for (const SplitSummary& split : split_by(key, every ? scores : counted)) {
      add_summary(table, split.key, split.value, split.summary);
    }
  }
  table.print(std::cout, style);
}

void print_excluded(const std::vector<ExcludedCase>& excluded) {
  if (excluded.empty()) return;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const ExcludedCase& one : excluded) by_reason[one.why].push_back(one.id);
  std::cout << "\nexcluded: " << excluded.size() << '\n';
  for (const auto& [why, ids] : by_reason) {
    constexpr std::size_t kNamed = 4;
    std::cout << "  " << ids.size() << "  " << why << " (";
    for (std::size_t i = 0; i < std::min(kNamed, ids.size()); ++i) {
      std::cout << (i > 0 ? ", " : "") << ids[i];
    }
    std::cout << (ids.size() > kNamed ? ", ..." : "") << ")\n";
  }
}

int validate_gains(const CaseSet& set, const std::vector<Bound>& bounds, bool json) {
  const GainScores gains = score_gains(set.cases);
  double errors = 0.0;
  for (const GainScore& gain : gains.gains) {
    errors += std::abs(gain.error_points) / static_cast<double>(gains.gains.size());
  }
  if (json) {
    std::cout << io::gains_json(gains).dump(1) << '\n';
  } else {
    Table table({{"pair", Align::kLeft},
                 {"quantity", Align::kLeft},
                 {"predicted"},
                 {"5 - 95 %", Align::kLeft},
                 {"measured"},
                 {"points"},
                 {"sign", Align::kLeft},
                 {"in", Align::kLeft}});
    for (const GainScore& g : gains.gains) {
      table.add(
          {g.pair, std::string(name_of(g.quantity)), format_number(g.predicted_ratio.p50) + "x",
           format_number(g.predicted_ratio.p05) + " - " + format_number(g.predicted_ratio.p95),
           format_number(g.measured_ratio) + "x", format_number(g.error_points),
           g.sign_right ? "right" : "wrong", g.covered ? "yes" : "no"});
    }
    table.print(std::cout, TerminalStyle::of_stdout());
    print_excluded(gains.excluded);
  }
  bool ok = true;
  for (const Bound& bound : bounds) {
    const bool known = bound.figure == "error_points" && !gains.gains.empty();
    ok = meets(bound, known ? std::optional(errors) : std::nullopt) && ok;
  }
  return ok ? 0 : kBoundMissed;
}

}  // namespace

int run_validate(const Arguments& arguments) {
  namespace po = boost::program_options;
  po::options_description options("options");
  options.add_options()("file", po::value<std::vector<std::string>>()->composing(),
                        "case files (positional); those of data/field when none is given")(
      "gain", po::bool_switch(), "compare the gain of pairs of cases that share a \"pair\"")(
      "bound", po::value<std::vector<std::string>>()->composing(),
      "FIGURE=LIMIT, e.g. mape=0.1 or coverage=0.85; exit 1 when missed; repeatable")(
      "summary", po::bool_switch(), "only the totals")(
      "print-cases", po::bool_switch(),
      "print the cases as JSON lines, published records turned into cases, and stop")(
      "json", po::bool_switch(), "machine-readable output");
  const HelpText help{
      "fulcrum validate [FILE ...] [OPTIONS]",
      "Predicts every case of the files and compares with what was measured: error, coverage of "
      "the\n"
      "90 % interval, shape over concurrency; in total and by kernel set, speculation and card.",
      "  fulcrum validate data/field/jasl-2026-05.jsonl --bound mape=0.1 --bound coverage=0.85"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"file"}, values)) return 0;
  std::vector<Bound> bounds;
  if (values.count("bound") != 0) {
    for (const auto& text : values["bound"].as<std::vector<std::string>>()) {
      bounds.push_back(parse_bound(text));
    }
  }
  const std::vector<std::string> files = values.count("file") != 0
                                             ? values["file"].as<std::vector<std::string>>()
                                             : shipped_case_files();
  if (values["print-cases"].as<bool>()) {
    for (const std::string& file : files) {
      for (const io::CaseDocument& one : io::read_case_documents(file)) {
        std::cout << one.value.dump() << '\n';
      }
    }
    return 0;
  }
  CaseSet set;
  for (const std::string& file : files) {
    CaseSet one = io::load_cases(file);
    std::move(one.cases.begin(), one.cases.end(), std::back_inserter(set.cases));
    std::move(one.excluded.begin(), one.excluded.end(), std::back_inserter(set.excluded));
    std::move(one.warnings.begin(), one.warnings.end(), std::back_inserter(set.warnings));
  }
  const bool json = values["json"].as<bool>();
  if (!json) {
    for (const std::string& warning : set.warnings) std::cerr << "note: " << warning << '\n';
  }
  if (values["gain"].as<bool>()) return validate_gains(set, bounds, json);

  std::vector<Score> scores;
  std::vector<Score> counted;
  std::vector<Score> tpot;
  for (const Case& one : set.cases) {
    for (Score& score : score_case(one)) {
      if (score.quantity != MeasuredQuantity::kTtft) counted.push_back(score);
      if (score.quantity == MeasuredQuantity::kTpot) tpot.push_back(score);
      scores.push_back(std::move(score));
    }
  }
  if (json) {
    std::cout << io::validation_json(scores, set).dump(1) << '\n';
  } else {
    const TerminalStyle style = TerminalStyle::of_stdout();
    if (!values["summary"].as<bool>()) {
      print_scores(scores, style);
      std::cout << '\n';
    }
    print_summaries(scores, counted, style);
    print_excluded(set.excluded);
  }
  std::cout.flush();
  bool ok = true;
  for (const Bound& bound : bounds) {
    ok = meets(bound, figure_of(bound, summarise(counted), summarise(tpot))) && ok;
  }
  return ok ? 0 : kBoundMissed;
}

}  // namespace fulcrum::cli
