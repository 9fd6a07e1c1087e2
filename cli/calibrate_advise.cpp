// `fulcrum calibrate --advise`: which of the tables' shapes to measure next so that one named
// prediction becomes sharper, within a budget of GPU seconds.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "calibrate/design.h"
#include "calibrate/prior.h"
#include "cli/calibrate_options.h"
#include "cli/table.h"
#include "model/errors.h"

namespace fulcrum::cli {
namespace {

// One measurement is launched until the timer has seen enough: replay's own defaults of half a
// second of sampling and as much again for start, weights and verification.
constexpr double kLeastMeasurementSeconds = 1.0;
constexpr double kLaunchesPerMeasurement = 200.0;

/// "SERIES_ID NAME=VALUE,NAME=VALUE"
struct Target {
  std::string id;
  std::map<std::string, double> fields;
};

Target parse_target(const std::string& text) {
  const auto fail = [&](const std::string& why) {
    return InputError({"command line", "--advise", "\"" + text + "\": " + why,
                       "\"SERIES_ID NAME=VALUE,...\", e.g. \"gemm_perf/sglang-0.5.14/gemm/"
                       "sglang_torch_linear/bfloat16 m=16,n=4096,k=7168\""});
  };
  Target target;
  std::istringstream words(text);
  std::string assignments;
  if (!(words >> target.id >> assignments)) throw fail("two words are needed");
  std::istringstream parts(assignments);
  std::string part;
  while (std::getline(parts, part, ',')) {
    const auto equals = part.find('=');
    char* end = nullptr;
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(number >= 0.0 && number <= 1e12))
      throw fail("\"" + part + "\" is not NAME=VALUE");
    target.fields[part.substr(0, equals)] = number;
  }
  return target;
}

/// The shape's dimensions by name; null for one it does not have.
double* field(calibrate::Shape& shape, const std::string& name) {
  using namespace calibrate;
  if (auto* gemm = std::get_if<GemmRow>(&shape)) {
    return name == "m" ? &gemm->m : name == "n" ? &gemm->n : name == "k" ? &gemm->k : nullptr;
  }
  if (auto* moe = std::get_if<MoeRow>(&shape)) {
    return name == "num_tokens"    ? &moe->num_tokens
           : name == "hidden_size" ? &moe->hidden_size
           : name == "inter_size"  ? &moe->inter_size
           : name == "topk"        ? &moe->top_k
           : name == "num_experts" ? &moe->num_experts
           : name == "moe_tp_size" ? &moe->moe_tp_size
           : name == "moe_ep_size" ? &moe->moe_ep_size
                                   : nullptr;
  }
  if (auto* attention = std::get_if<AttentionRow>(&shape)) {
    return name == "batch_size"  ? &attention->batch_size
           : name == "step"      ? &attention->context_tokens
           : name == "num_heads" ? &attention->num_heads
           : name == "tp_size"   ? &attention->tp_size
                                 : nullptr;
  }
  if (auto* mhc = std::get_if<MhcRow>(&shape)) {
    return name == "num_tokens"    ? &mhc->num_tokens
           : name == "hidden_size" ? &mhc->hidden_size
                                   : nullptr;
  }
  auto& collective = std::get<CollectiveRow>(shape);
  return name == "num_gpus"       ? &collective.num_gpus
         : name == "message_size" ? &collective.message_size
                                  : nullptr;
}

std::string describe_shape(const calibrate::Shape& shape) {
  static const char* const kNames[] = {"m",           "n",           "k",          "num_tokens",
                                       "hidden_size", "inter_size",  "topk",       "num_experts",
                                       "moe_tp_size", "moe_ep_size", "batch_size", "step",
                                       "num_heads",   "tp_size",     "num_gpus",   "message_size"};
  calibrate::Shape copy = shape;
  std::ostringstream out;
  for (const char* name : kNames) {
    if (const double* value = field(copy, name)) {
      if (out.tellp() > 0) out << ',';
      out << name << '=' << *value;
    }
  }
  return out.str();
}

}  // namespace

int calibrate_advise(const std::vector<TablesOfDevice>& devices,
                     const boost::program_options::variables_map& values) {
  const Target target = parse_target(values["advise"].as<std::string>());
  const std::vector<CalibrationOfDevice> known = read_calibrations(values);
  for (const TablesOfDevice& device : devices) {
    std::vector<std::string> unexplained;
    std::vector<calibrate::FitTask> tasks = calibrate::collect_tasks(device.tables, unexplained);
    for (calibrate::FitTask& task : tasks) {
      if (calibrate::series_id(task.key) != target.id) continue;
      const calibrate::SeriesFit* fit = nullptr;
      for (const CalibrationOfDevice& c : known) {
        if (c.calibration.hardware != device.hardware.name) continue;
        fit = calibrate::find_series(c.calibration, task.key);
      }
      if (fit == nullptr) {
        throw InputError({"command line", "--calibration",
                          "holds no fit of " + target.id + " on " + device.hardware.name,
                          "fit it first: fulcrum calibrate TABLE -o FILE"});
      }
      // The target is one more record: the first row's shape with the named dimensions replaced.
      calibrate::Record wanted = task.records.front();
      for (const auto& [name, value] : target.fields) {
        double* slot = field(wanted.shape, name);
        if (slot == nullptr) {
          throw InputError({"command line", "--advise", "this kernel has no \"" + name + "\"",
                            describe_shape(wanted.shape)});
        }
        *slot = value;
      }
      task.records.push_back(wanted);
      const auto law = task.family->bind(task.key, device.device, task.records);
      const auto parameters = task.family->parameters(task.key, device.device);
      const std::vector<double> at = calibrate::values(*fit);
      std::vector<std::uint32_t> rows(task.records.size());
      std::iota(rows.begin(), rows.end(), 0);
      const auto predictions = calibrate::predict(*fit, law, rows);
      const Eigen::MatrixXd gradients = calibrate::log_gradients(law, parameters, at, rows);
      const auto m = static_cast<Eigen::Index>(rows.size()) - 1;

      calibrate::DesignProblem problem;
      problem.covariance = fit->covariance;
      problem.candidate_gradients = gradients.topRows(m);
      problem.target_gradients = gradients.bottomRows(1);
      problem.candidate_costs.resize(m);
      for (Eigen::Index i = 0; i < m; ++i) {
        problem.candidate_costs[i] =
            kLeastMeasurementSeconds +
            kLaunchesPerMeasurement * predictions[static_cast<std::size_t>(i)].seconds;
      }
      problem.noise_variance = fit->residual.scale * fit->residual.scale;
      problem.budget_seconds = values["budget"].as<double>();
      problem.per_cost = true;
      const auto steps = calibrate::greedy_design(problem);

      const calibrate::TimePrediction& now = predictions.back();
      nlohmann::ordered_json measure = nlohmann::ordered_json::array();
      Table table({{"measure", Align::kLeft}, {"GPU time so far"}, {"parameter error"}});
      for (const calibrate::DesignStep& step : steps) {
        const std::string shape = describe_shape(task.records[step.candidate].shape);
        const double sd = std::sqrt(std::max(0.0, step.target_variance));
        char error[32];
        std::snprintf(error, sizeof error, "%.3f %%", sd * 100.0);
        table.add({shape, format_seconds(step.spent_seconds), error});
        measure.push_back(
            {{"shape", shape}, {"spent_seconds", step.spent_seconds}, {"parameter_log_sd", sd}});
      }
      if (values["json"].as<bool>()) {
        std::cout << nlohmann::ordered_json{{"schema", "fulcrum/calibration_advice/1"},
                                            {"series", target.id},
                                            {"seconds",
                                             {{"p05", now.low_seconds},
                                              {"p50", now.seconds},
                                              {"p95", now.high_seconds}}},
                                            {"parameter_log_sd", now.log_sd_parameters},
                                            {"residual_log_scale", fit->residual.scale},
                                            {"measure", measure}}
                         .dump(1)
                  << '\n';
        return 0;
      }
      std::cout << describe_shape(wanted.shape) << ": " << format_seconds(now.seconds) << " ("
                << format_seconds(now.low_seconds) << " - " << format_seconds(now.high_seconds)
                << "); error from parameters " << percent(now.log_sd_parameters)
                << ", from the law itself " << percent(fit->residual.scale)
                << " (no measurement of other shapes lowers that)\n";
      if (fit->residual.scale > now.log_sd_parameters) {
        std::cout << "most of it is the law's own: measuring this very shape ("
                  << format_seconds(kLeastMeasurementSeconds +
                                    kLaunchesPerMeasurement * now.seconds)
                  << ") says more than any row below\n";
      }
      if (steps.empty()) std::cout << "nothing within the budget makes it sharper\n";
      table.print(std::cout, TerminalStyle::of_stdout());
      return 0;
    }
  }
  throw InputError({"command line", "--advise", "\"" + target.id + "\" is in none of the tables",
                    "a series id that `fulcrum calibrate TABLE --parameters` prints"});
}

}  // namespace fulcrum::cli
