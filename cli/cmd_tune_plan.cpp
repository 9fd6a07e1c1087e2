#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <stdexcept>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/scenario_options.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/load_lever.h"
#include "model/io/tuned_config.h"
#include "model/io/write_results.h"
#include "model/tune_plan.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

std::string ratio(double value) { return format_number(value) + "x"; }

/// Gains of one shape are small: "+0.83 %".
std::string gain(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%+.2f %%", 100.0 * (value - 1.0));
  return text.data();
}

std::string minutes(double value) {
  return value >= 1.0 ? format_number(value) + " min" : format_number(60.0 * value) + " s";
}

std::string text_of(const TritonConfig& c) {
  return std::to_string(c.block_m) + "x" + std::to_string(c.block_n) + "x" +
         std::to_string(c.block_k) + " g" + std::to_string(c.group_m) + " w" +
         std::to_string(c.num_warps) + " s" + std::to_string(c.num_stages);
}

void print_plan(const Deployment& deployment, const TunePlan& plan, const TerminalStyle& style) {
  std::cout << bold(deployment.name + ": tuning " + plan.kernel, style) << '\n';
  Table table({{"C"},
               {"N"},
               {"K"},
               {"M"},
               {"launches"},
               {"now"},
               {"best"},
               {"share"},
               {"ceiling"},
               {"gain"},
               {"5 - 95 %", Align::kLeft},
               {"candidates"},
               {"minutes"},
               {"verdict", Align::kLeft},
               {"first candidate", Align::kLeft, true}});
  for (const TunePair& pair : plan.pairs) {
    table.add(
        {format_count(pair.concurrency), std::to_string(pair.n), std::to_string(pair.k),
         std::to_string(pair.m), format_count(pair.launches), format_seconds(pair.now_seconds),
         format_seconds(pair.best_seconds), format_percent(pair.share_fraction),
         gain(pair.ceiling_ratio), gain(pair.gain_ratio.p50),
         gain(pair.gain_ratio.p05) + " - " + gain(pair.gain_ratio.p95),
         std::to_string(pair.candidates.size()) + " of " + std::to_string(pair.num_candidates),
         minutes(pair.cut_minutes), std::string(name_of(pair.verdict)),
         text_of(pair.candidates.front().config)});
  }
  table.print(std::cout, style);
  std::cout << "all shapes at the first concurrency: " << gain(plan.gain_all_ratio.p50) << " ("
            << gain(plan.gain_all_ratio.p05) << " - " << gain(plan.gain_all_ratio.p95)
            << "), ceiling " << gain(plan.ceiling_all_ratio) << '\n'
            << "the tuner as it comes takes " << minutes(plan.full_minutes)
            << "; what is worth doing takes "
            << (plan.cut_minutes > 0.0 ? minutes(plan.cut_minutes) : "nothing") << '\n';
}

ordered_json to_json(const Deployment& deployment, const TunePlan& plan) {
  ordered_json pairs = ordered_json::array();
  for (const TunePair& pair : plan.pairs) {
    ordered_json candidates = ordered_json::array();
    for (const RankedConfig& ranked : pair.candidates) {
      ordered_json entry = io::to_json(ranked.config);
      entry["seconds"] = ranked.seconds;
      candidates.push_back(std::move(entry));
    }
    pairs.push_back({{"n", pair.n},
                     {"k", pair.k},
                     {"m", pair.m},
                     {"concurrency", pair.concurrency},
                     {"launches", pair.launches},
                     {"now_seconds", pair.now_seconds},
                     {"best_seconds", pair.best_seconds},
                     {"share_fraction", pair.share_fraction},
                     {"gain_ratio", io::to_json(pair.gain_ratio)},
                     {"ceiling_ratio", pair.ceiling_ratio},
                     {"full_minutes", pair.full_minutes},
                     {"cut_minutes", pair.cut_minutes},
                     {"num_candidates", pair.num_candidates},
                     {"verdict", name_of(pair.verdict)},
                     {"candidates", std::move(candidates)}});
  }
  return {{"schema", "fulcrum/tune_plan/1"},
          {"scenario", deployment.name},
          {"kernel", plan.kernel},
          {"full_minutes", plan.full_minutes},
          {"cut_minutes", plan.cut_minutes},
          {"gain_all_ratio", io::to_json(plan.gain_all_ratio)},
          {"ceiling_all_ratio", plan.ceiling_all_ratio},
          {"pairs", std::move(pairs)}};
}

/// Two files a shape: the candidates left for a tuner's loop, and the law's choice in the form the
/// engines load.
void write_candidates(const Deployment& deployment, const TunePlan& plan,
                      const std::string& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) {
    throw InputError({"command line", "--write", directory + " cannot be made", "a directory"});
  }
  std::map<std::string, ordered_json> chosen;
  for (const TunePair& pair : plan.pairs) {
    const std::string name = io::tuned_file_name(pair.n, pair.k, deployment.hardware.label);
    chosen[name][std::to_string(pair.m)] = io::to_json(pair.candidates.front().config);
    ordered_json list = ordered_json::array();
    for (const RankedConfig& ranked : pair.candidates) list.push_back(io::to_json(ranked.config));
    write_file(directory + "/candidates,N=" + std::to_string(pair.n) +
                   ",K=" + std::to_string(pair.k) + ",M=" + std::to_string(pair.m) + ".json",
               list.dump(1) + "\n");
  }
  for (const auto& [name, document] : chosen) {
    write_file(std::string(directory).append("/").append(name), document.dump(4) + "\n");
  }
  std::cerr << "wrote " << directory << ": " << chosen.size() << " configuration files and "
            << plan.pairs.size() << " candidate lists\n";
}

/// What a given tuned file should give, per token count.
void print_file(const Deployment& tuned, const std::string& path, bool json,
                const TerminalStyle& style) {
  const io::TunedFile file = io::load_tuned_file(path);
  ordered_json rows = ordered_json::array();
  Table table({{"M"}, {"default"}, {"tuned"}, {"faster"}, {"configuration", Align::kLeft}});
  for (const auto& [m, config] : file.by_batch_size) {
    const double before = tuned_seconds(tuned, kDefaultTritonConfig, m, file.n, file.k);
    const double after = tuned_seconds(tuned, config, m, file.n, file.k);
    rows.push_back({{"m", m},
                    {"default_seconds", before},
                    {"tuned_seconds", after},
                    {"config", io::to_json(config)}});
    table.add({std::to_string(m), format_seconds(before), format_seconds(after),
               ratio(before / after), text_of(config)});
  }
  if (json) {
    std::cout << ordered_json({{"schema", "fulcrum/tuned_file/1"},
                               {"file", path},
                               {"n", file.n},
                               {"k", file.k},
                               {"device", file.device},
                               {"rows", rows}})
                     .dump(1)
              << '\n';
    return;
  }
  std::cout << "N=" << file.n << " K=" << file.k << " on " << tuned.hardware.label << '\n';
  table.print(std::cout, style);
}

}  // namespace

int run_tune_plan(const Arguments& arguments) {
  po::options_description options = scenario_options();
  options.add_options()("gpus", po::value<double>()->default_value(8.0, "8"),
                        "GPUs the tuner runs on")(
      "config", po::value<std::string>(),
      "instead: what this tuned file (N=..,K=..,...json) should give over the default")(
      "write", po::value<std::string>(),
      "write candidate lists and the law's own choice to this directory");
  const HelpText help{
      "fulcrum tune-plan [SCENARIO] [OPTIONS]",
      "Which (N, K) x M of a Triton block-FP8 GEMM are worth tuning: their share of the step, "
      "what\n"
      "tuning can give end to end, the minutes it takes, and the candidates that can win. Token\n"
      "counts are those the decode steps of the given concurrencies use.",
      "  fulcrum tune-plan campaign-stock --concurrency 1,16 --write plan"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"scenario"}, values)) return 0;
  TuneOptions tune;
  tune.num_gpus = values["gpus"].as<double>();
  if (!(tune.num_gpus >= 1.0) || !std::isfinite(tune.num_gpus)) {
    throw InputError({"command line", "--gpus", "is " + format_number(tune.num_gpus),
                      "a number of GPUs from 1"});
  }
  std::vector<std::string> warnings;
  const io::ScenarioDocument scenario = scenario_of(values);
  const Deployment deployment = io::resolve_scenario(scenario, warnings);
  std::vector<std::string> ignored;
  const Deployment tuned =
      io::resolve_scenario(io::pull(scenario, io::load_lever("fp8_configs")), ignored);
  const bool json = values["json"].as<bool>();
  const TerminalStyle style = TerminalStyle::of_stdout();
  try {
    if (values.count("config") != 0) {
      print_file(tuned, values["config"].as<std::string>(), json, style);
      return 0;
    }
    const TunePlan plan = tune_plan(deployment, tuned, tune);
    if (plan.pairs.empty()) {
      throw InputError({scenario.file, "", "does not fit in memory at these concurrencies", ""});
    }
    if (values.count("write") != 0) {
      write_candidates(deployment, plan, values["write"].as<std::string>());
    }
    if (json) {
      std::cout << to_json(deployment, plan).dump(1) << '\n';
    } else {
      print_plan(deployment, plan, style);
    }
  } catch (const std::invalid_argument& error) {
    throw InputError({scenario.file, "/kernel_set", error.what(),
                      "a kernel set with _w8a8_block_fp8_matmul, e.g. sglang-2026-06-sm120"});
  }
  std::cout.flush();
  print_warnings(warnings);
  return 0;
}

}  // namespace fulcrum::cli
