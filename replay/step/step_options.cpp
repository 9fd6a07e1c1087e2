#include "replay/step/step_options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace fulcrum::replay {
namespace {

namespace po = boost::program_options;

std::vector<int> parse_list(const std::string& name, const std::string& text, int lowest,
                            int highest) {
  std::vector<int> values;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    int value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value < lowest ||
        value > highest) {
      throw std::invalid_argument("--" + name + ": \"" + part + "\" is not a whole number from " +
                                  std::to_string(lowest) + " to " + std::to_string(highest));
    }
    values.push_back(value);
  }
  if (values.empty()) throw std::invalid_argument("--" + name + ": at least one number");
  return values;
}

}  // namespace

std::vector<StepCell> StepOptions::cells() const {
  std::vector<StepCell> cells;
  for (const int k : drafts) {
    for (const int context : contexts) {
      for (const int batch : batches) {
        cells.push_back({.requests = batch, .drafts = k, .context = context});
      }
    }
  }
  return cells;
}

StepOptions parse_step_options(int argc, const char* const* argv) {
  StepOptions options;
  std::string tp = "4";
  std::string batches = "1";
  std::string contexts = "8192";
  std::string drafts = "0";
  po::options_description description("Options");
  description.add_options()("help,h", "this text")(
      "model", po::value(&options.model)->default_value(options.model), "name or config.json")(
      "tp", po::value(&tp)->default_value(tp), "tensor-parallel degrees whose rank is replayed")(
      "batch", po::value(&batches)->default_value(batches), "requests, e.g. 1,16,128")(
      "context", po::value(&contexts)->default_value(contexts), "tokens in every request's cache")(
      "drafts", po::value(&drafts)->default_value(drafts),
      "MTP drafts a step: K draft passes and verification of 1+K tokens")(
      "gpus", po::value(&options.num_gpus)->default_value(1),
      "1: one rank alone, without collectives; else --tp GPUs with them")(
      "side-streams", po::bool_switch(&options.side_streams),
      "branches of a layer on streams of their own")(
      "alone", "time every op alone instead of the step: what a prediction is built from")(
      "no-eager", "do not time the step launched by the host")(
      "no-ops", "do not time the ops inside the graph")(
      "list", "print the launches of one step; needs no GPU")(
      "seed", po::value(&options.seed)->default_value(1), "of weights, caches and routing")(
      "out,o", po::value(&options.out_path), "append records to this file");
  po::variables_map values;
  po::store(po::parse_command_line(argc, argv, description), values);
  po::notify(values);
  std::ostringstream help;
  help << "Replays one decode step of one rank with full-size synthetic weights: every op of the "
          "step\n"
          "graph on this repository's kernels, eager and as one CUDA graph, with the time of each "
          "op\n"
          "inside it.\n\n"
          "  fulcrum replay step --tp 4 --batch 1,16,64 --context 1024,8192 -o step.jsonl\n"
          "  fulcrum replay step --tp 2 --gpus 2 --batch 16        # with its 87 all-reduces\n"
          "  fulcrum replay step --alone --tp 2,4 --batch 1,16,128 -o alone.jsonl\n\n"
       << description;
  options.help_text = help.str();
  if (values.count("help") != 0) {
    options.action = StepOptions::Action::kHelp;
    return options;
  }
  options.tensor_parallel = parse_list("tp", tp, 1, 64);
  options.batches = parse_list("batch", batches, 1, 1024);
  options.contexts = parse_list("context", contexts, 128, 1 << 20);
  options.drafts = parse_list("drafts", drafts, 0, 7);
  options.eager = values.count("no-eager") == 0;
  options.per_op = values.count("no-ops") == 0;
  if (values.count("alone") != 0) options.action = StepOptions::Action::kAlone;
  if (values.count("list") != 0) options.action = StepOptions::Action::kList;
  for (const int degree : options.tensor_parallel) {
    if (options.num_gpus != 1 && options.num_gpus != degree) {
      throw std::invalid_argument("--gpus: " + std::to_string(options.num_gpus) +
                                  " is neither 1 nor the tensor-parallel degree " +
                                  std::to_string(degree));
    }
  }
  return options;
}

StepGraph reference_graph(const ModelConfig& model, int tensor_parallel, int draft_tokens) {
  if (const auto problem = tensor_parallel_problem(model, tensor_parallel)) {
    throw std::invalid_argument("--tp: " + *problem);
  }
  // The defaults of KernelTraits: live widths, FP8 wo_a, no padded heads; as
  // data/kernels/fulcrum-reference.json says.
  GraphSettings settings;
  settings.tensor_parallel = tensor_parallel;
  settings.num_draft_tokens = draft_tokens;
  return build_step_graph(model, settings);
}

void print_schedule(const StepOptions& options, const ModelConfig& model) {
  for (const int degree : options.tensor_parallel) {
    const int drafts = *std::ranges::max_element(options.drafts);
    const StepGraph graph = reference_graph(model, degree, drafts);
    std::printf("# %s TP%d, %d drafts\n%5s %5s %5s  %-24s %s\n", model.name.c_str(), degree, drafts,
                "pass", "layer", "part", "op", "not launched on one GPU because");
    for (const ScheduledOp& op : schedule_step(graph)) {
      const std::string layer = op.layer < 0 ? "-" : std::to_string(op.layer);
      std::printf("%5d %5s %5d  %-24s %s\n", op.pass, layer.c_str(), op.part,
                  std::string(name_of(op.id)).c_str(), absence_of(op.id, false).c_str());
    }
  }
}

}  // namespace fulcrum::replay
