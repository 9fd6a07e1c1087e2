#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/replay_step.h"
#include "model/errors.h"
#include "model/interval.h"
#include "model/io/load_scenario.h"
#include "model/price.h"

namespace fulcrum::cli {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

const std::vector<OpId> kCollectives{OpId::kAllReduce, OpId::kAllGather};

struct Cell {
  double requests = 1.0;
  int drafts = 0;
  double context = 0.0;
};

/// What is asked of every cell.
struct Asked {
  bool collectives = false;
  bool side_streams = false;
};

Json predict_cell(const Deployment& scenario, const Cell& cell, const Asked& asked) {
  Deployment deployment = scenario;
  deployment.speculation.draft_tokens = cell.drafts;
  deployment.speculation.acceptance.assign(static_cast<std::size_t>(cell.drafts), 1.0);
  deployment.engine.cuda_graph = true;
  deployment.engine.graph_capture_max_tokens = 1e9;
  deployment.kernels.traits.side_stream_max_tokens = asked.side_streams ? 1e9 : 0.0;
  StepPricer pricer(deployment);
  if (!asked.collectives) pricer.set_free(kCollectives);
  StepState state;
  state.requests = cell.requests;
  state.tokens_per_request = 1.0 + cell.drafts;
  state.context = cell.context;
  state.logits_rows = state.tokens();
  StepPrice price;
  pricer.price(state, price);
  const Interval interval = log_normal_interval(price.total_seconds(), price.log_sigma);
  std::vector<std::string> order;
  std::map<std::string, std::pair<double, double>> ops;  // executions, seconds
  for (std::size_t i = 0; i < price.ops.size(); ++i) {
    const StepOp& op = pricer.graph().ops[i];
    if (price.ops[i].seconds == 0.0) continue;
    const std::string name = (op.draft ? "draft." : "") + std::string(name_of(op.id));
    if (!ops.contains(name)) order.push_back(name);
    ops[name].first += op.count;
    ops[name].second += price.ops[i].seconds;
  }
  Json json = {
      {"schema", "fulcrum/step_prediction/1"},
      {"scenario", deployment.name},
      {"kernel_set", deployment.kernels.name},
      {"tensor_parallel", deployment.tensor_parallel},
      {"requests", cell.requests},
      {"draft_tokens", cell.drafts},
      {"context_tokens", cell.context},
      {"collectives", asked.collectives},
      {"side_streams", asked.side_streams},
      {"step_seconds", {{"p05", interval.p05}, {"p50", interval.p50}, {"p95", interval.p95}}}};
  json["ops"] = Json::array();
  for (const std::string& name : order) {
    json["ops"].push_back(
        {{"op", name}, {"executions", ops[name].first}, {"seconds", ops[name].second}});
  }
  return json;
}

}  // namespace

int run_replay_predict_step(const Arguments& arguments) {
  po::options_description options;
  const auto text = [](const char* value) {
    return po::value<std::string>()->default_value(value);
  };
  options.add_options()("scenario", po::value<std::string>()->default_value("reference-h200-tp4"),
                        "scenario whose model, GPU, TP degree and kernel set are priced")(
      "batch", text("1,2,4,8,16,32,64,128"), "requests")("context", text("1024,8192,65536"),
                                                         "tokens in every request's cache")(
      "drafts", text("0,1,3"), "MTP drafts a step")(
      "collectives", po::bool_switch(), "with all-reduces and all-gather; else one rank alone")(
      "side-streams", po::bool_switch(), "branches of a layer side by side")(
      "output,o", po::value<std::string>(), "write here, else to the terminal");
  po::variables_map values;
  if (!parse(
          arguments,
          {.usage = "fulcrum replay predict-step [SCENARIO] [OPTIONS]",
           .description = "Predicts the steps that `replay step` measures, one JSON line a cell: "
                          "write it down before you measure.",
           .example = "fulcrum replay predict-step reference-h200-tp4 --batch 1,16 -o "
                      "predicted.jsonl"},
          options, {"scenario"}, values)) {
    return 0;
  }
  std::vector<std::string> warnings;
  const Deployment deployment =
      io::resolve_scenario(io::read_scenario(values["scenario"].as<std::string>()), warnings);
  const auto numbers = [&](const char* name, double lower, double upper) {
    return parse_numbers(values[name].as<std::string>(), std::string("--") + name, lower, upper);
  };
  const Asked asked{.collectives = values["collectives"].as<bool>(),
                    .side_streams = values["side-streams"].as<bool>()};
  std::string lines;
  for (const double drafts : numbers("drafts", 0.0, 7.0)) {
    for (const double context : numbers("context", 128.0, 1048576.0)) {
      for (const double batch : numbers("batch", 1.0, 1024.0)) {
        const Cell cell{batch, static_cast<int>(std::lround(drafts)), context};
        lines += predict_cell(deployment, cell, asked).dump() + "\n";
      }
    }
  }
  for (const std::string& warning : warnings) std::cerr << "note: " << warning << '\n';
  if (values.count("output") == 0) {
    std::cout << lines;
    return 0;
  }
  const std::string path = values["output"].as<std::string>();
  std::ofstream out(path, std::ios::app);  // predictions of several scenarios share a file
  out << lines;
  if (!out.flush()) throw std::runtime_error(path + " cannot be written");
  return 0;
}

}  // namespace fulcrum::cli
