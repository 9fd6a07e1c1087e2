#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/explain_compare.h"
#include "cli/explain_target.h"
#include "cli/options.h"
#include "cli/scenario_options.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/write_explanations.h"

namespace fulcrum::cli {
namespace {

constexpr const char* kTopics[] = {"step", "speculation", "target", "compare"};

std::string ratio(double value) { return format_number(value) + "x"; }

void explain_step(const Deployment& deployment, bool json, const TerminalStyle& style) {
  const Prediction prediction = predict(deployment);
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const PredictionPoint& point : prediction.points) {
    if (point.breakdown.empty()) continue;
    const std::vector<WaterfallBar> bars = step_waterfall(point);
    if (json) {
      points.push_back({{"concurrency", point.concurrency}, {"waterfall", io::to_json(bars)}});
      continue;
    }
    std::cout << bold("C=" + format_count(point.concurrency) + ": from the roofline to the step",
                      style)
              << '\n';
    Table table({{"", Align::kLeft}, {"adds"}, {"until"}, {"", Align::kLeft}});
    constexpr int kBarWidth = 40;
    for (const WaterfallBar& bar_of : bars) {
      const bool is_end = bar_of.name == "floor" || bar_of.name == "step";
      const std::string name =
          is_end ? (bar_of.name == "floor" ? "roofline of all ops" : "predicted step")
                 : bar_of.name + " above it";
      table.add({name, format_seconds(bar_of.seconds), format_seconds(bar_of.until_seconds),
                 bar(bar_of.seconds / bars.back().seconds, kBarWidth, style)});
    }
    table.print(std::cout, style);
    std::cout << '\n';
  }
  if (json) {
    std::cout << nlohmann::ordered_json{{"schema", "fulcrum/explanation/1"},
                                        {"scenario", deployment.name},
                                        {"topic", "step"},
                                        {"points", points}}
                     .dump(1)
              << '\n';
  }
}

/// The gain over concurrency as one line a point, with 1x marked.
void plot_gains(const std::vector<SpeculationPoint>& points, const TerminalStyle& style) {
  double most = 1.0;
  for (const SpeculationPoint& p : points) most = std::max(most, p.gain_ratio.p95);
  constexpr int kWidth = 60;
  const auto column = [&](double gain) {
    return std::clamp(static_cast<int>(std::lround(gain / most * (kWidth - 1))), 0, kWidth - 1);
  };
  std::cout << bold("gain of speculation over concurrency (5 - 50 - 95 %; | is no gain)", style)
            << '\n';
  for (const SpeculationPoint& p : points) {
    std::string line(kWidth, ' ');
    for (int i = column(p.gain_ratio.p05); i <= column(p.gain_ratio.p95); ++i) {
      line[static_cast<std::size_t>(i)] = '-';
    }
    line[static_cast<std::size_t>(column(1.0))] = '|';
    line[static_cast<std::size_t>(column(p.gain_ratio.p50))] = '*';
    const std::string c = "C=" + format_count(p.concurrency);
    std::cout << c << std::string(c.size() < 7 ? 7 - c.size() : 1, ' ') << line << ' '
              << ratio(p.gain_ratio.p50) << (p.comparable ? "" : "  batches differ") << '\n';
  }
}

void print_causes(const SpeculationPoint& point, const TerminalStyle& style) {
  std::cout << '\n'
            << bold("C=" + format_count(point.concurrency) + ": " + ratio(point.gain_ratio.p50) +
                        " is the product of",
                    style)
            << '\n';
  Table table({{"cause", Align::kLeft}, {"factor"}, {"gain without it"}});
  constexpr double kWorthALine = 0.002;
  double rest = 1.0;
  for (const GainCause& cause : point.causes) {
    if (std::abs(std::log(cause.factor)) < kWorthALine) {
      rest *= cause.factor;
      continue;
    }
    table.add({cause.name, ratio(cause.factor), ratio(cause.gain_without_it)});
  }
  table.add({"(others)", ratio(rest), ""});
  table.print(std::cout, style);
  if (!point.comparable) {
    std::cout << "not comparable: " << format_count(point.batch_without.requests)
              << " requests decode together without drafts, "
              << format_count(point.batch_with.requests) << " with them (limited by "
              << name_of(point.batch_with.limiter)
              << "); an A/B here measures the batch as much as the drafts\n";
  }
  if (point.eager_with && !point.eager_without) {
    std::cout << "the verify step exceeds the captured graph sizes and runs eager\n";
  }
}

void print_crossover(const Crossover& cross, double most) {
  const auto text = [&](const std::optional<double>& c, Crossover::Status status) {
    if (c) return "stops paying at C=" + format_number(*c);
    return status == Crossover::Status::kNeverPays ? std::string("never pays")
                                                   : "still pays at C=" + format_count(most);
  };
  std::cout << "\nspeculation " << text(cross.p50, cross.p50_status)
            << " (low end of the gain: " << text(cross.p05, cross.p05_status)
            << ", high end: " << text(cross.p95, cross.p95_status) << ")\n";
}

/// Which entries of the ledger the drafts change, and what the pools would hold.
void print_memory_change(const Deployment& without, const Deployment& with,
                         const TerminalStyle& style) {
  const MemoryLedger a = memory_ledger(without);
  const MemoryLedger b = memory_ledger(with);
  std::cout << '\n' << bold("memory per GPU without and with drafts", style) << '\n';
  Table table({{"entry", Align::kLeft}, {"without"}, {"with"}});
  const auto bytes = [&](const char* name, Bytes x, Bytes y) {
    if (x != y) table.add({name, format_bytes(x.value()), format_bytes(y.value())});
  };
  bytes("draft weights", a.draft_weights, b.draft_weights);
  bytes("state of request slots", a.request_state, b.request_state);
  bytes("KV pool", a.kv_pool, b.kv_pool);
  bytes("a pool token", a.pool_bytes_per_token, b.pool_bytes_per_token);
  bytes("  window rows", a.pool_token.window, b.pool_token.window);
  bytes("  pooled rows, keys", a.pool_token.pooled + a.pool_token.index_keys,
        b.pool_token.pooled + b.pool_token.index_keys);
  bytes("  CSA states", a.pool_token.csa_state, b.pool_token.csa_state);
  bytes("  HCA states", a.pool_token.hca_state, b.pool_token.hca_state);
  table.add({"pool tokens", format_count(a.pool_tokens), format_count(b.pool_tokens)});
  const Workload& work = with.workload;
  const double resident =
      mean_decode_context(work.input_tokens, work.output_tokens, work.lengths.cv);
  BatchLimiter limiter_a = BatchLimiter::kKvMemory;
  BatchLimiter limiter_b = BatchLimiter::kKvMemory;
  const double fit_a = requests_that_fit(without, a, resident, limiter_a);
  const double fit_b = requests_that_fit(with, b, resident, limiter_b);
  table.add({"requests that fit", format_count(fit_a), format_count(fit_b)});
  table.add({"  limited by", std::string(name_of(limiter_a)), std::string(name_of(limiter_b))});
  table.add({"max running requests", format_count(a.max_running_requests),
             format_count(b.max_running_requests)});
  table.print(std::cout, style);
}

/// Passes of a chained draft worth showing, or the block the checkpoint was trained for.
int most_drafts(const Deployment& with) {
  constexpr int kMostPasses = 5;
  const bool block = with.speculation.method == DraftMethod::kDspark;
  return std::max(with.speculation.draft_tokens, block ? with.model.dspark_block : kMostPasses);
}

void print_ladder(const Deployment& with, const TerminalStyle& style) {
  const int most = most_drafts(with);
  std::cout << '\n'
            << bold("tok/s by drafted tokens K, and what the last position adds (best in brackets)",
                    style)
            << '\n';
  std::vector<Table::Column> columns{{"C"}};
  for (int k = 0; k <= most; ++k) columns.push_back({"K=" + std::to_string(k)});
  Table table(columns);
  for (double c : with.workload.concurrency) {
    const std::vector<DraftChoice> ladder = draft_ladder(with, c, most);
    std::vector<std::string> cells{format_count(c)};
    for (const DraftChoice& choice : ladder) {
      std::string text = format_number(choice.output_tokens_per_second);
      if (choice.draft_tokens > 0) {
        const auto percent = std::lround(100.0 * (choice.marginal_gain_ratio - 1.0));
        text += (percent < 0 ? " " : " +") + std::to_string(percent) + "%";
      }
      const bool best = choice.draft_tokens == best_of(ladder).draft_tokens;
      cells.push_back(best ? "[" + text + "]" : text);
    }
    table.add(cells);
  }
  table.print(std::cout, style);
}

void print_dips(const std::vector<GainDip>& dips) {
  for (const GainDip& dip : dips) {
    std::cout << "dip at C=" << format_count(dip.concurrency) << " (" << ratio(dip.gain_ratio)
              << "): " << dip.cause << " costs " << ratio(1.0 / dip.cause_ratio)
              << " more there than at its neighbours\n";
  }
}

void explain_speculation_topic(const Deployment& without, const Deployment& with, bool json,
                               const TerminalStyle& style) {
  if (with.speculation.draft_tokens == 0) {
    throw InputError({"command line", "explain speculation",
                      "\"" + with.name + "\" has no speculation",
                      "a scenario with drafts, e.g. campaign-b"});
  }
  std::vector<double> grid{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  grid.insert(grid.end(), with.workload.concurrency.begin(), with.workload.concurrency.end());
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  std::vector<SpeculationPoint> points;
  for (double c : grid) points.push_back(explain_speculation(without, with, c));
  const Crossover cross = crossover(points);
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const SpeculationPoint& point : points) list.push_back(io::to_json(point));
    nlohmann::ordered_json ladders = nlohmann::ordered_json::array();
    for (double c : with.workload.concurrency) {
      ladders.push_back(io::to_json(c, draft_ladder(with, c, most_drafts(with))));
    }
    std::cout << nlohmann::ordered_json{{"schema", "fulcrum/explanation/1"},
                                        {"scenario", with.name},
                                        {"against", without.name},
                                        {"topic", "speculation"},
                                        {"crossover_concurrency", io::to_json(cross)},
                                        {"dips", io::to_json(gain_dips(points))},
                                        {"draft_ladder", ladders},
                                        {"points", list}}
                     .dump(1)
              << '\n';
    return;
  }
  plot_gains(points, style);
  print_crossover(cross, grid.back());
  print_dips(gain_dips(points));
  for (const SpeculationPoint& point : points) {
    if (std::find(with.workload.concurrency.begin(), with.workload.concurrency.end(),
                  point.concurrency) != with.workload.concurrency.end()) {
      print_causes(point, style);
    }
  }
  print_ladder(with, style);
  print_memory_change(without, with, style);
}

/// The topic may stand before or after the scenario.
std::string take_topic(Arguments& arguments) {
  for (const char* topic : kTopics) {
    const auto it = std::find(arguments.begin(), arguments.end(), topic);
    if (it != arguments.end()) {
      arguments.erase(it);
      return topic;
    }
  }
  return "";
}

}  // namespace

int run_explain(const Arguments& given) {
  namespace po = boost::program_options;
  Arguments arguments = given;
  const std::string topic = take_topic(arguments);
  po::options_description options = scenario_options();
  options.add_options()(
      "against", po::value<std::string>(),
      "speculation: the arm without drafts, else the scenario itself; compare: A")(
      "tok-s", po::value<double>(), "target: aggregate output tokens per second");
  const HelpText help{
      "fulcrum explain [SCENARIO] step|speculation|target|compare [OPTIONS]",
      "step: from the roofline to the predicted step. speculation: what drafts give over\n"
      "concurrency, split into causes, and where they stop paying. target: whether --tok-s is\n"
      "possible on this hardware, what bounds it, and which levers together reach it. compare:\n"
      "whether SCENARIO serves the batch of --against, and which entry of the memory ledger says "
      "no.",
      "  fulcrum explain campaign-b speculation --against campaign-a"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"scenario"}, values)) return 0;
  if (topic.empty()) {
    throw InputError({"command line", "", "no topic", "step, speculation, target or compare"});
  }
  std::vector<std::string> warnings;
  const io::ScenarioDocument scenario = scenario_of(values);
  const Deployment deployment = io::resolve_scenario(scenario, warnings);
  const TerminalStyle style = TerminalStyle::of_stdout();
  const bool json = values["json"].as<bool>();
  if (!json && !memory_ledger(deployment).fits) {
    std::cout << deployment.name << " does not fit: the weights leave no room for a request at "
              << "memory_fraction " << deployment.engine.memory_fraction << '\n';
    return 0;
  }
  if (topic == "step") {
    explain_step(deployment, json, style);
  } else if (topic == "speculation") {
    Deployment without = without_speculation(deployment);
    if (values.count("against") != 0) {
      without =
          io::resolve_scenario(io::read_scenario(values["against"].as<std::string>()), warnings);
    }
    explain_speculation_topic(without, deployment, json, style);
  } else if (topic == "compare") {
    if (values.count("against") == 0) {
      throw InputError({"command line", "--against", "is missing", "the scenario to compare with"});
    }
    const Deployment before =
        io::resolve_scenario(io::read_scenario(values["against"].as<std::string>()), warnings);
    explain_compare_topic(before, deployment, json, style);
  } else {
    constexpr double kMost = 1e9;
    if (values.count("tok-s") == 0 || !(values["tok-s"].as<double>() > 0.0) ||
        values["tok-s"].as<double>() > kMost) {
      throw InputError({"command line", "--tok-s", "is missing or out of range",
                        "a number above 0, at most 1e9"});
    }
    explain_target_topic(scenario, deployment, values["tok-s"].as<double>(), json, style);
  }
  std::cout.flush();
  print_warnings(warnings);
  return 0;
}

}  // namespace fulcrum::cli
