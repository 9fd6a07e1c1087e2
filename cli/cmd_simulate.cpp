#include <chrono>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/scenario_options.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/load_trace.h"
#include "model/io/write_explanations.h"
#include "model/predict.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;

struct Run {
  double concurrency = 0.0;  ///< 0: open loop
  SimulationResult result;
  double wall_seconds = 0.0;
};

Run run_once(const Deployment& deployment, const Traffic& traffic,
             const SimulationOptions& options) {
  Run run;
  const auto start = std::chrono::steady_clock::now();
  run.result = simulate(deployment, traffic, options);
  run.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (traffic.kind == Traffic::Kind::kClosedLoop) run.concurrency = traffic.concurrency;
  return run;
}

void add_latency(Table& table, const std::string& name, const DurationHistogram& histogram) {
  table.add({name, format_seconds(histogram.mean()), format_seconds(histogram.quantile(0.5)),
             format_seconds(histogram.quantile(0.9)), format_seconds(histogram.quantile(0.99))});
}

void print(const Run& run, const Deployment& deployment, const TerminalStyle& style) {
  const SimulationResult& r = run.result;
  const std::string what =
      run.concurrency > 0.0 ? "C=" + format_count(run.concurrency) : "open loop";
  const std::string whose = deployment.replicas() > 1.0
                                ? ", one of " + format_count(deployment.replicas()) + " replicas"
                                : "";
  std::cout << bold(what + ": " + format_number(r.output_tokens_per_second) + " tok/s over " +
                        format_seconds(r.makespan_seconds) + ", ramp and drain included" + whose,
                    style)
            << '\n';
  if (run.concurrency > 0.0) {
    const Throughput formula =
        closed_loop_throughput(deployment, run.concurrency * deployment.replicas());
    std::cout << "steady " << format_number(r.steady_output_tokens_per_second)
              << " tok/s; the formula gives "
              << format_number(formula.output_tokens_per_second / formula.run_efficiency /
                               deployment.replicas())
              << " (" << name_of(formula.regime) << ")\n";
  }
  Table table({{"", Align::kLeft}, {"mean"}, {"p50"}, {"p90"}, {"p99"}});
  add_latency(table, "TTFT", r.ttft);
  add_latency(table, "TPOT, per request", r.tpot);
  add_latency(table, "ITL, between emissions", r.itl);
  add_latency(table, "end to end", r.end_to_end);
  table.print(std::cout, style);
  std::cout << r.completed << " of " << r.offered << " requests served, " << r.rejected
            << " too long for the pool, " << r.retractions << " retractions; mean batch "
            << format_number(r.mean_batch) << "; pool peak " << format_percent(r.pool_peak_fraction)
            << "\nsimulated in " << format_seconds(run.wall_seconds) << ", "
            << format_number(r.makespan_seconds / run.wall_seconds) << "x real time\n\n";
}

Traffic traffic_of(const po::variables_map& values, const Deployment& deployment) {
  Traffic traffic;
  traffic.input_tokens = deployment.workload.input_tokens;
  traffic.output_tokens = deployment.workload.output_tokens;
  traffic.lengths = deployment.workload.lengths;
  if (values.count("length-ratio") != 0) {
    const double ratio = values["length-ratio"].as<double>();
    if (!(ratio > 0.0 && ratio <= 1.0)) {
      throw InputError({"command line", "--length-ratio", "is out of range", "above 0, at most 1"});
    }
    traffic.lengths = LengthSpread::uniform(ratio);
  }
  return traffic;
}

}  // namespace

int run_simulate(const Arguments& arguments) {
  po::options_description options = scenario_options();
  options.add_options()("rate,r", po::value<double>(),
                        "open loop: Poisson arrivals of this many requests/s and replica")(
      "trace", po::value<std::string>(), "open loop: arrivals and lengths of a JSONL file")(
      "requests,n", po::value<std::int64_t>(), "prompts in all (else num_prompts, or 20 rounds)")(
      "length-ratio", po::value<double>(),
      "lengths uniform in [ratio, 2 - ratio] times the mean; else as the scenario says")(
      "policy", po::value<std::string>(), "prefill_first or mixed; else the engine's own")(
      "seed", po::value<std::uint64_t>()->default_value(1), "of every random draw");
  const HelpText help{
      "fulcrum simulate [SCENARIO] [OPTIONS]",
      "Runs continuous batching request by request on one replica, with priced steps.",
      "  fulcrum simulate b12x-tp4 --concurrency 64 --requests 2000 --length-ratio 0.5"};
  po::variables_map values;
  if (!parse(arguments, help, options, {"scenario"}, values)) return 0;
  std::vector<std::string> warnings;
  const Deployment deployment = io::resolve_scenario(scenario_of(values), warnings);
  SimulationOptions simulation;
  simulation.seed = values["seed"].as<std::uint64_t>();
  simulation.policy = default_policy(deployment.engine.kind);
  if (values.count("policy") != 0) {
    const std::string name = values["policy"].as<std::string>();
    if (name != "prefill_first" && name != "mixed") {
      throw InputError({"command line", "--policy", "is \"" + name + "\"", "prefill_first, mixed"});
    }
    simulation.policy = name == "mixed" ? SchedulerPolicy::kMixed : SchedulerPolicy::kPrefillFirst;
  }
  if (simulation.policy == SchedulerPolicy::kMixed) simulation.reserved_output_fraction = 0.0;

  constexpr std::int64_t kMostRequests = 10'000'000;
  if (values.count("requests") != 0 && (values["requests"].as<std::int64_t>() < 1 ||
                                        values["requests"].as<std::int64_t>() > kMostRequests)) {
    throw InputError({"command line", "--requests", "is out of range", "1 to 10000000"});
  }
  if (values.count("rate") != 0 &&
      !(values["rate"].as<double>() >= 1e-6 && values["rate"].as<double>() <= 1e6)) {
    throw InputError({"command line", "--rate", "is out of range", "1e-6 to 1e6 requests/s"});
  }
  Traffic traffic = traffic_of(values, deployment);
  std::vector<TraceRequest> trace;
  std::vector<Run> runs;
  constexpr std::int64_t kDefaultRequests = 1000;
  if (values.count("trace") != 0) {
    trace = io::load_trace(values["trace"].as<std::string>());
    traffic.kind = Traffic::Kind::kTrace;
    traffic.trace = trace;
    runs.push_back(run_once(deployment, traffic, simulation));
  } else if (values.count("rate") != 0) {
    traffic.kind = Traffic::Kind::kPoisson;
    traffic.requests_per_second = values["rate"].as<double>();
    if (!(traffic.requests_per_second > 0.0)) {
      throw InputError({"command line", "--rate", "is not above 0", "requests per second"});
    }
    traffic.num_requests =
        values.count("requests") != 0 ? values["requests"].as<std::int64_t>() : kDefaultRequests;
    runs.push_back(run_once(deployment, traffic, simulation));
  } else {
    const Workload& work = deployment.workload;
    for (std::size_t i = 0; i < work.concurrency.size(); ++i) {
      traffic.concurrency = std::max(1.0, std::ceil(work.concurrency[i] / deployment.replicas()));
      constexpr double kRounds = 20.0;
      double prompts = kRounds * traffic.concurrency;
      if (const auto stated = work.prompts_at(work.concurrency[i])) {
        prompts = std::ceil(*stated / deployment.replicas());
      }
      traffic.num_requests = values.count("requests") != 0 ? values["requests"].as<std::int64_t>()
                                                           : static_cast<std::int64_t>(prompts);
      runs.push_back(run_once(deployment, traffic, simulation));
    }
  }
  if (values["json"].as<bool>()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Run& run : runs) {
      nlohmann::ordered_json item = io::to_json(run.result);
      item["concurrency"] =
          run.concurrency > 0.0 ? nlohmann::json(run.concurrency) : nlohmann::json();
      item["wall_seconds"] = run.wall_seconds;
      list.push_back(std::move(item));
    }
    std::cout << nlohmann::ordered_json{{"schema", "fulcrum/simulation/1"},
                                        {"scenario", deployment.name},
                                        {"seed", simulation.seed},
                                        {"runs", list}}
                     .dump(1)
              << '\n';
    return 0;
  }
  const TerminalStyle style = TerminalStyle::of_stdout();
  for (const Run& run : runs) print(run, deployment, style);
  std::cout.flush();
  print_warnings(warnings);
  return 0;
}

}  // namespace fulcrum::cli
