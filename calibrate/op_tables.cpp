#include "calibrate/op_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace fulcrum::calibrate {
namespace {

/// The launch that a record timed.
Launch launch_of(const ModelConfig& model, const OpRecord& record) {
  GraphSettings settings;
  settings.tensor_parallel = record.tensor_parallel;
  settings.num_draft_tokens = std::max(1, record.draft_tokens);
  const StepGraph graph = build_step_graph(model, settings);
  StepState state;
  state.requests = record.requests;
  state.tokens_per_request = 1.0 + record.draft_tokens;
  state.context = record.context_tokens;
  state.logits_rows = state.tokens();
  const StepOp* found = nullptr;
  for (const StepOp& op : graph.ops) {
    // The target pass's op; a draft's where only drafts have it.
    if (name_of(op.id) == record.op && (found == nullptr || (found->draft && !op.draft))) {
      found = &op;
    }
  }
  if (found == nullptr) {
    throw std::invalid_argument("op \"" + record.op + "\" is not in the step graph");
  }
  return launch_at(graph, *found, state);
}

struct Point {
  LaunchFeatures features{};
  double log_sum = 0.0;
  int count = 0;
};

TabulatedOp tabulate(const std::string& op, const std::vector<Point>& points) {
  TabulatedOp result;
  OpTable& table = result.table;
  table.op = op;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<double>& knots = table.knots[axis];
    for (const Point& point : points) knots.push_back(point.features[axis]);
    std::sort(knots.begin(), knots.end());
    knots.erase(std::unique(knots.begin(), knots.end()), knots.end());
  }
  for (const double tokens : table.knots[0]) {
    for (const double width : table.knots[1]) {
      for (const double extent : table.knots[2]) {
        const LaunchFeatures wanted{tokens, width, extent};
        const auto at = std::find_if(points.begin(), points.end(),
                                     [&](const Point& p) { return p.features == wanted; });
        if (at == points.end()) {
          throw std::invalid_argument("op \"" + op + "\" was not timed at tokens " +
                                      std::to_string(tokens) + ", width " + std::to_string(width) +
                                      ", extent " + std::to_string(extent) +
                                      ": the points of an op must fill a grid");
        }
        table.seconds.push_back(std::exp(at->log_sum / at->count));
      }
    }
  }
  return result;
}

}  // namespace

std::vector<TabulatedOp> tabulate_ops(const ModelConfig& model,
                                      const std::vector<OpRecord>& alone) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<Point>> points;
  std::map<std::string, std::vector<double>> errors;
  std::map<std::string, int> throttled;
  for (const OpRecord& record : alone) {
    if (!(record.seconds > 0.0)) {
      throw std::invalid_argument("op \"" + record.op + "\" has a time of " +
                                  std::to_string(record.seconds) + " s");
    }
    if (!points.contains(record.op)) order.push_back(record.op);
    const LaunchFeatures features = launch_features(launch_of(model, record));
    std::vector<Point>& of_op = points[record.op];
    auto at = std::find_if(of_op.begin(), of_op.end(),
                           [&](const Point& p) { return p.features == features; });
    if (at == of_op.end()) at = of_op.insert(of_op.end(), Point{features, 0.0, 0});
    at->log_sum += std::log(record.seconds);
    ++at->count;
    errors[record.op].push_back(record.standard_error_seconds / record.seconds);
    throttled[record.op] += record.throttled ? 1 : 0;
  }
  std::vector<TabulatedOp> tables;
  for (const std::string& op : order) {
    tables.push_back(tabulate(op, points[op]));
    std::vector<double>& relative = errors[op];
    const auto middle = relative.begin() + static_cast<std::ptrdiff_t>(relative.size() / 2);
    std::nth_element(relative.begin(), middle, relative.end());
    tables.back().median_standard_error = *middle;
    tables.back().num_throttled = throttled[op];
  }
  return tables;
}

void set_discrepancy(const ModelConfig& model, const std::vector<OpRecord>& in_step,
                     std::vector<TabulatedOp>& tables) {
  struct Squares {
    double sum = 0.0;
    int count = 0;
    void add(double x) {
      sum += x * x;
      ++count;
    }
    double root_mean() const { return count > 0 ? std::sqrt(sum / count) : 0.0; }
  };
  std::map<std::string, std::pair<Squares, Squares>> of_op;  // short, long
  std::pair<Squares, Squares> pooled;
  for (const OpRecord& record : in_step) {
    const auto at = std::find_if(tables.begin(), tables.end(),
                                 [&](const TabulatedOp& t) { return t.table.op == record.op; });
    if (at == tables.end()) continue;
    const double priced_seconds = op_table_seconds(at->table, launch_of(model, record));
    for (auto* squares : {&of_op[record.op], &pooled}) {
      if (priced_seconds < kShortSeconds) {
        squares->first.add(record.seconds - priced_seconds);
      } else {
        squares->second.add(std::log(record.seconds / priced_seconds));
      }
    }
  }
  for (TabulatedOp& tabulated : tables) {
    const auto own = of_op.find(tabulated.table.op);
    const auto& [brief, lasting] = own == of_op.end() ? pooled : own->second;
    tabulated.table.sigma_seconds = brief.root_mean();
    tabulated.table.log_sigma = lasting.root_mean();
  }
}

}  // namespace fulcrum::calibrate
