#include "model/io/sweep_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "model/errors.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;

constexpr double kMostPoints = 1e10;
constexpr double kMostValues = 1e6;

[[noreturn]] void refuse(const std::string& axis, const std::string& message,
                         const std::string& allowed) {
  throw InputError({"command line", "--over " + axis, message, allowed});
}

double number_of(const std::string& text, const std::string& axis) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) {
    refuse(axis, "\"" + text + "\" is not a number", "low:high, low:high:step or low:high:*factor");
  }
  return value;
}

/// A whole number stays one in JSON: loaders tell the two apart.
json number_json(double value) {
  constexpr double kExact = 9e15;
  if (value == std::floor(value) && std::abs(value) < kExact) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

std::vector<json> range_of(const std::vector<std::string>& parts, const std::string& axis) {
  const double low = number_of(parts[0], axis);
  const double high = number_of(parts[1], axis);
  const bool geometric = parts.size() == 3 && parts[2].starts_with('*');
  double by = 1.0;
  if (parts.size() == 3) by = number_of(geometric ? parts[2].substr(1) : parts[2], axis);
  if (low > high || (geometric ? low <= 0.0 || by <= 1.0 : by <= 0.0)) {
    refuse(axis, "has no value", "low <= high, a step above 0, a factor above 1");
  }
  if (!geometric && (high - low) / by >= kMostValues) {
    refuse(axis, "has too many values", "at most 1000000");
  }
  std::vector<json> values;
  // A value is computed from its number, not summed up: steps such as 0.1 must end where they say.
  constexpr double kRounding = 1e-9;
  for (int i = 0; static_cast<double>(i) < kMostValues; ++i) {
    const double value = geometric ? low * std::pow(by, i) : low + by * i;
    if (value > high * (1.0 + kRounding) + (high == 0.0 ? kRounding : 0.0)) break;
    // Twelve digits: 0.8 + 0.05 is meant as 0.85.
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", value);
    values.push_back(number_json(std::strtod(text, nullptr)));
  }
  return values;
}

/// The workload's values a sweep varies without resolving the scenario anew.
std::string fast_name(const std::string& path) {
  std::string name = path;
  for (const char* prefix : {"/workload/", "workload."}) {
    if (name.starts_with(prefix)) name = name.substr(std::string(prefix).size());
  }
  const bool fast = name == "concurrency" || name == "input_tokens" || name == "output_tokens";
  return fast ? name : "";
}

std::vector<double> numbers_of(const SweepAxis& axis, double most) {
  std::vector<double> numbers;
  for (const json& value : axis.values) {
    const bool whole = value.is_number() && value.get<double>() == std::floor(value.get<double>());
    if (!whole || value.get<double>() < 1.0 || value.get<double>() > most) {
      refuse(axis.path, "has the value " + value.dump(), "whole numbers from 1");
    }
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

}  // namespace

SweepAxis parse_sweep_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    refuse(text, "names no values", "PATH=a,b,c or PATH=low:high, e.g. concurrency=1:128");
  }
  SweepAxis axis{text.substr(0, equals), {}};
  const std::string values = text.substr(equals + 1);
  // Values that are JSON lists or objects hold commas of their own.
  const json whole = json::parse("[" + values + "]", nullptr, false);
  if (whole.is_array()) {
    axis.values.assign(whole.begin(), whole.end());
    return axis;
  }
  std::vector<std::string> parts;
  std::stringstream stream(values);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  if ((parts.size() == 2 || parts.size() == 3) && values.find(',') == std::string::npos) {
    axis.values = range_of(parts, axis.path);
    return axis;
  }
  stream = std::stringstream(values);
  for (std::string part; std::getline(stream, part, ',');) {
    json value = json::parse(part, nullptr, false);
    axis.values.push_back(value.is_discarded() ? json(part) : std::move(value));
  }
  return axis;
}

std::uint64_t SweepPlan::points_per_setting() const {
  return static_cast<std::uint64_t>(input_tokens.size()) * output_tokens.size() *
         concurrency.size();
}

std::uint64_t SweepPlan::num_settings() const {
  std::uint64_t count = 1;
  for (const SweepAxis& axis : settings) count *= axis.values.size();
  return count;
}

SweepPoint SweepPlan::point(std::uint64_t index) const {
  const std::uint64_t c = index % concurrency.size();
  index /= concurrency.size();
  const std::uint64_t o = index % output_tokens.size();
  const std::uint64_t i = index / output_tokens.size() % input_tokens.size();
  return {.concurrency = concurrency[c],
          .input_tokens = input_tokens[i],
          .output_tokens = output_tokens[o]};
}

std::vector<json> SweepPlan::setting_values(std::uint64_t index) const {
  std::uint64_t setting = index / points_per_setting();
  std::vector<json> values(settings.size());
  for (std::size_t a = settings.size(); a-- > 0;) {
    values[a] = settings[a].values[setting % settings[a].values.size()];
    setting /= settings[a].values.size();
  }
  return values;
}

SweepPlan make_sweep_plan(const ScenarioDocument& scenario, const std::vector<SweepAxis>& axes) {
  std::vector<std::string> ignored;
  const Deployment deployment = resolve_scenario(scenario, ignored);
  SweepPlan plan{scenario,
                 {},
                 {deployment.workload.input_tokens},
                 {deployment.workload.output_tokens},
                 deployment.workload.concurrency};
  std::set<std::string> seen;
  double points = 1.0;
  for (const SweepAxis& axis : axes) {
    const std::string name = fast_name(axis.path);
    if (!seen.insert(name.empty() ? axis.path : name).second) {
      refuse(axis.path, "is given twice", "each value once");
    }
    if (axis.values.empty()) refuse(axis.path, "has no value", "at least one");
    constexpr double kMostConcurrency = 1e6;
    if (name == "concurrency") plan.concurrency = numbers_of(axis, kMostConcurrency);
    if (name == "input_tokens") plan.input_tokens = numbers_of(axis, 1e9);
    if (name == "output_tokens") plan.output_tokens = numbers_of(axis, 1e9);
    if (name.empty()) plan.settings.push_back(axis);
    points *= static_cast<double>(axis.values.size());
  }
  set_concurrency(plan.scenario, plan.concurrency);
  if (points > kMostPoints) {
    refuse("...", "makes " + std::to_string(points) + " points", "at most 1e10");
  }
  return plan;
}

void run_sweep(const SweepPlan& plan, std::uint64_t first, std::uint64_t last, int num_threads,
               const std::function<void(const SweepBlock&)>& block,
               std::vector<std::string>& warnings) {
  constexpr std::uint64_t kBlock = 65536;
  const std::uint64_t per_setting = plan.points_per_setting();
  const double longest = *std::max_element(plan.input_tokens.begin(), plan.input_tokens.end()) +
                         *std::max_element(plan.output_tokens.begin(), plan.output_tokens.end());
  const double shortest = *std::min_element(plan.input_tokens.begin(), plan.input_tokens.end());
  std::vector<SweepPoint> points;
  std::vector<SweepRow> rows;
  CalibrationCache cache;
  while (first < last) {
    const std::uint64_t setting_end = std::min(last, (first / per_setting + 1) * per_setting);
    ScenarioDocument document = plan.scenario;
    SweepBlock out{first, plan.setting_values(first), {}, {}};
    for (std::size_t a = 0; a < plan.settings.size(); ++a) {
      set_value(document, plan.settings[a].path, out.settings[a]);
    }
    const Deployment deployment = resolve_scenario(document, warnings, &cache);
    if (longest > deployment.engine.max_context_tokens) {
      refuse("input_tokens", "plus output is up to " + std::to_string(std::llround(longest)),
             "at most engine.max_context_tokens = " +
                 std::to_string(deployment.engine.max_context_tokens));
    }
    if (shortest <= deployment.workload.cached_prefix_tokens) {
      refuse("input_tokens", "is as low as " + std::to_string(std::llround(shortest)),
             "more than workload.cached_prefix_tokens");
    }
    SweepRunner runner(deployment, num_threads);
    while (first < setting_end) {
      const std::uint64_t end = std::min(first + kBlock, setting_end);
      points.clear();
      for (std::uint64_t i = first; i < end; ++i) points.push_back(plan.point(i));
      rows.resize(points.size());
      runner.run(points, rows);
      out.first = first;
      out.points = points;
      out.rows = rows;
      block(out);
      first = end;
    }
  }
}

}  // namespace fulcrum::io
