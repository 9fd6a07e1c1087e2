#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/scenario_options.h"
#include "cli/table.h"
#include "model/io/write_results.h"
#include "model/predict.h"

namespace fulcrum::cli {
namespace {

std::string range_of(const Interval& interval, std::string (*format)(double)) {
  return format(interval.p05) + " - " + format(interval.p95);
}

std::string throughput_range(const Interval& interval) { return range_of(interval, format_number); }

/// What the TTFT column assumes: how requests fall relative to each other.
const char* meaning_of(ClosedLoopRegime regime) {
  switch (regime) {
    case ClosedLoopRegime::kLockstep:
      return "lockstep: requests of one length start and end together, prompts wait in line";
    case ClosedLoopRegime::kDrifting:
      return "drifting: they start together, drafts pull them apart, prompts come in clusters";
    case ClosedLoopRegime::kStaggered:
      break;
  }
  return "staggered: they end at any time, each prompt interrupts the others";
}

void print_regimes(const Prediction& prediction) {
  std::optional<ClosedLoopRegime> last;
  for (const PredictionPoint& p : prediction.points) {
    if (p.breakdown.empty() || p.regime == last) continue;
    last = p.regime;
    std::cout << "from C=" << format_count(p.concurrency) << ' ' << meaning_of(p.regime) << '\n';
  }
  constexpr double kWorthSaying = 0.99;
  for (const PredictionPoint& p : prediction.points) {
    if (p.breakdown.empty() || p.run_efficiency > kWorthSaying) continue;
    std::cout << "C=" << format_count(p.concurrency) << ": a run of its num_prompts yields "
              << format_percent(p.run_efficiency) << " of the steady rate, for its last requests\n";
  }
}

void print_summary(const Prediction& prediction, const TerminalStyle& style) {
  Table table({{"C"},
               {"batch"},
               {"limited by", Align::kLeft},
               {"step"},
               {"TPOT"},
               {"TTFT"},
               {"tok/s"},
               {"5 - 95 %", Align::kLeft},
               {"tok/s/user"}});
  for (const PredictionPoint& p : prediction.points) {
    if (p.breakdown.empty()) {
      table.add({format_count(p.concurrency), "0", std::string(name_of(p.batch_limiter)), "-", "-",
                 "-", "-", "does not fit", "-"});
      continue;
    }
    table.add({format_count(p.concurrency), format_count(p.effective_batch),
               std::string(name_of(p.batch_limiter)), format_seconds(p.step_seconds.p50),
               format_seconds(p.tpot_seconds.p50), format_seconds(p.ttft_seconds.p50),
               format_number(p.output_tokens_per_second.p50),
               throughput_range(p.output_tokens_per_second),
               p.output_tokens_per_second_per_user.p50 > 0.0
                   ? format_number(p.output_tokens_per_second_per_user.p50)
                   : "-"});
  }
  table.print(std::cout, style);
  print_regimes(prediction);
}

void print_breakdown(const PredictionPoint& point, std::size_t lines, const TerminalStyle& style) {
  std::vector<BreakdownLine> sorted = point.breakdown;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  const double step = point.step_seconds.p50;
  std::cout << '\n'
            << bold("C=" + format_count(point.concurrency) + ": one decode step, " +
                        format_seconds(step) + (point.eager ? ", eager" : ", CUDA graph"),
                    style)
            << '\n';
  Table table({{"op", Align::kLeft},
               {"kernel", Align::kLeft, true},
               {"count"},
               {"time"},
               {"share"},
               {"", Align::kLeft},
               {"limiter", Align::kLeft},
               {"floor"},
               {"basis", Align::kLeft}});
  constexpr int kBarWidth = 10;
  double rest = 0.0;
  double rest_floor = 0.0;
  double rest_count = 0.0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const BreakdownLine& line = sorted[i];
    if (i >= lines) {
      rest += line.seconds;
      rest_floor += line.floor_seconds;
      rest_count += line.count;
      continue;
    }
    table.add({line.op, line.kernel, format_count(line.count), format_seconds(line.seconds),
               format_percent(line.share_fraction), bar(line.share_fraction, kBarWidth, style),
               std::string(name_of(line.limiter)), format_seconds(line.floor_seconds),
               line.op == "gap" ? "" : std::string(name_of(line.basis))});
  }
  if (rest > 0.0) {
    table.add({"(others)", "", format_count(rest_count), format_seconds(rest),
               format_percent(rest / step), bar(rest / step, kBarWidth, style), "",
               format_seconds(rest_floor), ""});
  }
  table.print(std::cout, style);
}

void print_memory(const Deployment& deployment, const MemoryLedger& memory) {
  const bool sglang = deployment.engine.kind == EngineKind::kSglang;
  const auto text = [](Bytes bytes) { return format_bytes(bytes.value()); };
  if (!memory.fits) {
    std::cout << "\nmemory per GPU: does not fit: weights " << text(memory.weights) << ", usable "
              << text(memory.budget) << " of " << text(memory.capacity) << " (memory_fraction "
              << deployment.engine.memory_fraction << ")\n";
    return;
  }
  std::cout << "\nmemory per GPU: " << text(memory.budget) << " of " << text(memory.capacity)
            << " (memory_fraction " << deployment.engine.memory_fraction << ") = weights "
            << text(memory.weights);
  if (sglang) {
    std::cout << " + state of " << format_count(memory.max_running_requests) << " request slots "
              << text(memory.request_state);
  } else {
    std::cout << " + draft " << text(memory.draft_weights) << " + activations, graphs "
              << text(memory.reserve.total());
  }
  std::cout << " + KV pool " << text(memory.kv_pool) << '\n';
  std::cout << "  pool: " << static_cast<long long>(memory.pool_tokens) << " tokens at "
            << format_number(memory.pool_bytes_per_token.value()) << " B";
  if (sglang) {
    std::cout << " (window " << format_count(std::round(memory.pool_token.window.value()))
              << ", pooled rows " << format_count(std::round(memory.pool_token.pooled.value()))
              << ", index keys " << format_count(std::round(memory.pool_token.index_keys.value()))
              << ", CSA states " << format_count(std::round(memory.pool_token.csa_state.value()))
              << ", HCA states " << format_count(std::round(memory.pool_token.hca_state.value()))
              << "); window pool " << static_cast<long long>(memory.window_tokens) << " tokens\n"
              << "  outside: " << text(memory.outside_budget) << " for draft weights "
              << text(memory.draft_weights) << ", activations " << text(memory.reserve.activations)
              << ", graphs " << text(memory.reserve.graphs) << ", workspaces "
              << text(memory.reserve.metadata + memory.reserve.parallel) << '\n';
  } else {
    std::cout << ", and " << text(memory.admission_bytes)
              << " per request for window and states at admission\n";
  }
  if (memory.reserve_is_short) {
    std::cout << "  the engine's own rule wants " << text(memory.reserve.total())
              << " outside the budget: lower memory_fraction or risk running out of memory\n";
  }
}

}  // namespace

int run_predict(const Arguments& arguments) {
  namespace po = boost::program_options;
  po::options_description options = scenario_options();
  options.add_options()("lines", po::value<std::size_t>()->default_value(14),
                        "ops to list per step; the rest is summed")(
      "no-breakdown", po::bool_switch(), "only the summary table");
  const HelpText help{
      "fulcrum predict [SCENARIO] [OPTIONS]",
      "Prices one decode step kernel by kernel and says what a client sees at each concurrency.",
      "  fulcrum predict campaign-a --concurrency 1,8,16 --set engine.cuda_graph=false"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"scenario"}, values)) return 0;

  std::vector<std::string> warnings;
  const Deployment deployment = io::resolve_scenario(scenario_of(values), warnings);
  Prediction prediction = predict(deployment);
  prediction.warnings.insert(prediction.warnings.begin(), warnings.begin(), warnings.end());
  if (values["json"].as<bool>()) {
    std::cout << io::to_json(prediction).dump(1) << '\n';
    return 0;
  }
  const TerminalStyle style = TerminalStyle::of_stdout();
  std::cout << bold(deployment.name, style) << ": " << deployment.model.name << " on "
            << deployment.num_gpus << "x " << deployment.hardware.label << ", TP"
            << deployment.tensor_parallel << ", kernels " << deployment.kernels.name << "\n\n";
  print_summary(prediction, style);
  if (!values["no-breakdown"].as<bool>()) {
    for (const PredictionPoint& point : prediction.points) {
      if (!point.breakdown.empty()) {
        print_breakdown(point, values["lines"].as<std::size_t>(), style);
      }
    }
  }
  print_memory(deployment, prediction.points.back().memory);
  std::cout.flush();
  print_warnings(prediction.warnings);
  return 0;
}

}  // namespace fulcrum::cli
