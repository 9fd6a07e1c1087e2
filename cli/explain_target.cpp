#include "cli/explain_target.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "model/explain_step.h"
#include "model/io/load_lever.h"
#include "model/io/write_explanations.h"

namespace fulcrum::cli {
namespace {

struct Pull {
  std::string lever;
  double tokens_per_second = 0.0;  ///< with this lever and all before it
};

/// Adds, one at a time, the lever that gives most beside those already pulled, priced together,
/// until the target is reached or nothing gives 1 % more.
std::vector<Pull> pull_greedily(io::ScenarioDocument scenario, const Deployment& start,
                                double target, double concurrency) {
  constexpr double kWorthPulling = 1.01;
  std::vector<Pull> pulls;
  std::vector<std::string> names = io::lever_names();
  double now = closed_loop_throughput(start, concurrency).output_tokens_per_second;
  while (now < target && !names.empty()) {
    double best = now * kWorthPulling;
    std::string best_name;
    io::ScenarioDocument best_scenario;
    for (const std::string& name : names) {
      const io::LeverDocument lever = io::load_lever(name);
      if (!lever.architecture.empty() && lever.architecture != start.kernels.architecture) continue;
      io::ScenarioDocument changed = io::pull(scenario, lever);
      std::vector<std::string> ignored;
      const double tokens =
          closed_loop_throughput(io::resolve_scenario(changed, ignored), concurrency)
              .output_tokens_per_second;
      if (tokens > best) {
        best = tokens;
        best_name = name;
        best_scenario = std::move(changed);
      }
    }
    if (best_name.empty()) break;
    pulls.push_back({best_name, best});
    scenario = std::move(best_scenario);
    names.erase(std::find(names.begin(), names.end(), best_name));
    now = best;
  }
  return pulls;
}

std::string from(const std::optional<double>& concurrency) {
  return concurrency ? "from C=" + format_count(*concurrency) : std::string("at no concurrency");
}

}  // namespace

void explain_target_topic(const io::ScenarioDocument& scenario, const Deployment& deployment,
                          double target, bool json, const TerminalStyle& style) {
  const TargetAnswer answer = explain_target(deployment, target);
  // The concurrency to pull levers at: the largest the user asks about.
  const double concurrency = *std::max_element(deployment.workload.concurrency.begin(),
                                               deployment.workload.concurrency.end());
  const std::vector<Pull> pulls = pull_greedily(scenario, deployment, target, concurrency);
  const double now = closed_loop_throughput(deployment, concurrency).output_tokens_per_second;
  const bool reached = (pulls.empty() ? now : pulls.back().tokens_per_second) >= target;
  if (json) {
    nlohmann::ordered_json levers = nlohmann::ordered_json::array();
    for (const Pull& pull : pulls) {
      levers.push_back(
          {{"name", pull.lever}, {"output_tokens_per_second", pull.tokens_per_second}});
    }
    nlohmann::ordered_json out{
        {"schema", "fulcrum/explanation/1"}, {"scenario", deployment.name}, {"topic", "target"}};
    out.update(io::to_json(answer));
    out["levers_at_concurrency"] = concurrency;
    out["levers"] = levers;
    out["levers_reach_target"] = reached;
    std::cout << out.dump(1) << '\n';
    return;
  }
  std::cout << bold(format_number(target) + " tok/s on " + deployment.name, style) << '\n'
            << "hardware: possible " << from(answer.physical_from)
            << " (every kernel at its roofline, no prefill, no gap)\n"
            << "these kernels: predicted " << from(answer.predicted_from) << "\n\n";
  Table table({{"C"},
               {"batch"},
               {"roof tok/s"},
               {"predicted"},
               {"of roof"},
               {"roof is mostly", Align::kLeft}});
  for (std::size_t i = 0; i < answer.bounds.size(); ++i) {
    const RooflineBound& b = answer.bounds[i];
    table.add({format_count(b.concurrency), format_count(b.batch),
               format_number(b.output_tokens_per_second), format_number(answer.predicted[i]),
               format_percent(answer.predicted[i] / b.output_tokens_per_second),
               b.largest_family + " " + format_percent(b.largest_share)});
  }
  table.print(std::cout, style);
  std::cout << "\nlevers at C=" << format_count(concurrency)
            << ", each priced with those above it: " << format_number(now) << " tok/s now\n";
  for (const Pull& pull : pulls) {
    std::cout << "  + " << pull.lever << ": " << format_number(pull.tokens_per_second)
              << " tok/s\n";
  }
  std::cout << (reached ? "reaches the target\n" : "no known set of levers reaches the target\n");
}

}  // namespace fulcrum::cli
