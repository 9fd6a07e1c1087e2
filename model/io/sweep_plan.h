// The grid of a sweep: any values of a scenario, those of the workload fast, the others resolved
// anew for each combination.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/io/load_scenario.h"
#include "model/sweep.h"

namespace fulcrum::io {

/// A value of the scenario and what it takes.
// nlohmann::json moves without throwing, which the check does not see.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct SweepAxis {
  std::string
      path;  ///< as set_value takes it; "concurrency", "input_tokens", "output_tokens" short
  std::vector<nlohmann::json> values;
};

/// "PATH=a,b,c", "PATH=low:high", "PATH=low:high:step" or "PATH=low:high:*factor" (both ends
/// included, low to high). Throws InputError.
SweepAxis parse_sweep_axis(const std::string& text);

/// Points are numbered with the settings outermost, then input, output, concurrency.
struct SweepPlan {
  ScenarioDocument scenario;
  std::vector<SweepAxis> settings;  ///< every axis but the three below
  std::vector<double> input_tokens;
  std::vector<double> output_tokens;
  std::vector<double> concurrency;

  std::uint64_t points_per_setting() const;
  std::uint64_t num_settings() const;
  std::uint64_t num_points() const { return num_settings() * points_per_setting(); }
  SweepPoint point(std::uint64_t index) const;
  /// The value each of `settings` takes at a point.
  std::vector<nlohmann::json> setting_values(std::uint64_t index) const;
};

/// What no axis varies is the scenario's own. Throws InputError: an axis given twice, a length that
/// does not fit the maximum context, too many points, a scenario that does not resolve.
SweepPlan make_sweep_plan(const ScenarioDocument& scenario, const std::vector<SweepAxis>& axes);

/// A run of points of one setting; the spans hold until the call returns.
struct SweepBlock {
  std::uint64_t first = 0;  ///< number of the first point
  std::vector<nlohmann::json> settings;
  std::span<const SweepPoint> points;
  std::span<const SweepRow> rows;
};

/// Prices points [first, last) in order, at most 65536 at a time, so memory does not grow with
/// them.
void run_sweep(const SweepPlan& plan, std::uint64_t first, std::uint64_t last, int num_threads,
               const std::function<void(const SweepBlock&)>& block,
               std::vector<std::string>& warnings);

}  // namespace fulcrum::io
