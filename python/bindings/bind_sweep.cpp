// Sweeps into NumPy arrays: one C++ loop, no GIL.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cmath>
#include <limits>
#include <span>

#include "model/errors.h"
#include "model/io/json_reader.h"
#include "model/io/sweep_plan.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace fulcrum::python {
namespace {

using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Where the columns of a sweep go; NaN where the deployment does not fit.
struct Columns {
  double *effective_batch, *accept_length;
  std::int64_t* batch_limiter;
  double* intervals[4][3];  ///< step, TPOT, TTFT, tok/s by p05, p50, p95

  void set(std::size_t i, const SweepRow& row) const {
    const bool fits = row.effective_batch > 0.0;
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    effective_batch[i] = row.effective_batch;
    batch_limiter[i] = static_cast<std::int64_t>(row.batch_limiter);
    accept_length[i] = fits ? row.accept_length : kNone;
    const Interval* values[] = {&row.step_seconds, &row.tpot_seconds, &row.ttft_seconds,
                                &row.output_tokens_per_second};
    for (std::size_t q = 0; q < 4; ++q) {
      intervals[q][0][i] = fits ? values[q]->p05 : kNone;
      intervals[q][1][i] = fits ? values[q]->p50 : kNone;
      intervals[q][2][i] = fits ? values[q]->p95 : kNone;
    }
  }
};

/// Allocates the arrays, names them in `out` and returns where they lie.
Columns allocate(py::dict& out, std::size_t count) {
  Columns columns{};
  const auto array = [&](const std::string& name) {
    Array values(static_cast<py::ssize_t>(count));
    out[name.c_str()] = values;
    return values.mutable_data();
  };
  columns.effective_batch = array("effective_batch");
  columns.accept_length = array("accept_length");
  py::array_t<std::int64_t> limiter(static_cast<py::ssize_t>(count));
  out["batch_limiter"] = limiter;
  columns.batch_limiter = limiter.mutable_data();
  constexpr const char* kNames[] = {"step_seconds", "tpot_seconds", "ttft_seconds",
                                    "output_tokens_per_second"};
  constexpr const char* kQuantiles[] = {"_p05", "_p50", "_p95"};
  for (std::size_t q = 0; q < 4; ++q) {
    for (std::size_t i = 0; i < 3; ++i) {
      columns.intervals[q][i] = array(std::string(kNames[q]) + kQuantiles[i]);
    }
  }
  return columns;
}

py::dict sweep_grid(const Scenario& scenario, const Settings& axes, int num_threads) {
  std::vector<io::SweepAxis> parsed;
  for (const auto& [path, text] : axes) {
    const auto list = io::parse_json(text, path);
    io::SweepAxis axis{path, {}};
    axis.values.assign(list.begin(), list.end());
    parsed.push_back(std::move(axis));
  }
  const io::SweepPlan plan = io::make_sweep_plan(scenario.document, parsed);
  const std::size_t count = plan.num_points();
  constexpr std::size_t kMostInMemory = 200'000'000;
  if (count > kMostInMemory) {
    throw InputError({"call", "sweep", "makes " + std::to_string(count) + " points",
                      "at most 200 million in memory; `fulcrum sweep` streams more to a file"});
  }
  py::dict out;
  const Columns columns = allocate(out, count);
  Array concurrency(static_cast<py::ssize_t>(count));
  Array input(static_cast<py::ssize_t>(count));
  Array output(static_cast<py::ssize_t>(count));
  double* const c = concurrency.mutable_data();
  double* const i = input.mutable_data();
  double* const o = output.mutable_data();
  std::vector<std::string> warnings;
  {
    const py::gil_scoped_release release;
    io::run_sweep(
        plan, 0, count, num_threads,
        [&](const io::SweepBlock& block) {
          for (std::size_t k = 0; k < block.points.size(); ++k) {
            const std::size_t at = block.first + k;
            c[at] = block.points[k].concurrency;
            i[at] = block.points[k].input_tokens;
            o[at] = block.points[k].output_tokens;
            columns.set(at, block.rows[k]);
          }
        },
        warnings);
  }
  out["concurrency"] = concurrency;
  out["input_tokens"] = input;
  out["output_tokens"] = output;
  out["points_per_setting"] = plan.points_per_setting();
  out["lengths"] =
      py::make_tuple(plan.input_tokens.size(), plan.output_tokens.size(), plan.concurrency.size());
  out["warnings"] = warnings;
  return out;
}

void check_points(const Deployment& deployment, std::span<const SweepPoint> points) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SweepPoint& p = points[i];
    const auto refuse = [&](const char* name, double value, const std::string& allowed) {
      return InputError({"call", std::string(name) + "[" + std::to_string(i) + "]",
                         "is " + std::to_string(value), allowed});
    };
    const auto whole = [](double x) { return x >= 1.0 && x <= 1e9 && x == std::floor(x); };
    if (!whole(p.concurrency) || p.concurrency > 1e6) {
      throw refuse("concurrency", p.concurrency, "whole numbers from 1 to 1000000");
    }
    if (!whole(p.input_tokens)) throw refuse("input_tokens", p.input_tokens, "whole, from 1");
    if (!whole(p.output_tokens)) throw refuse("output_tokens", p.output_tokens, "whole, from 1");
    const double context = deployment.engine.max_context_tokens;
    if (p.input_tokens + p.output_tokens > context) {
      throw refuse("input_tokens", p.input_tokens,
                   "with the output at most " + std::to_string(std::llround(context)));
    }
    if (p.input_tokens <= deployment.workload.cached_prefix_tokens) {
      throw refuse("input_tokens", p.input_tokens, "more than workload.cached_prefix_tokens");
    }
  }
}

py::dict sweep_points(const Scenario& scenario, const Array& concurrency, const Array& input,
                      const Array& output, int num_threads) {
  const auto count = static_cast<std::size_t>(concurrency.size());
  if (static_cast<std::size_t>(input.size()) != count ||
      static_cast<std::size_t>(output.size()) != count) {
    throw InputError({"call", "sweep_points", "arrays differ in size", "arrays of one size"});
  }
  py::dict out;
  const Columns columns = allocate(out, count);
  const double* const c = concurrency.data();
  const double* const i = input.data();
  const double* const o = output.data();
  const py::gil_scoped_release release;
  std::vector<SweepPoint> points(count);
  for (std::size_t k = 0; k < count; ++k) points[k] = {c[k], i[k], o[k]};
  check_points(scenario.deployment, points);
  // As io::set_concurrency: the scenario's num_prompts hold only where all points are its own.
  Deployment deployment = scenario.deployment;
  for (double point : std::span(c, count)) {
    if (!deployment.workload.prompts_at(point)) {
      deployment.workload.num_prompts.clear();
      break;
    }
  }
  std::vector<SweepRow> rows(count);
  SweepRunner(deployment, num_threads).run(points, rows);
  for (std::size_t k = 0; k < count; ++k) columns.set(k, rows[k]);
  return out;
}

}  // namespace

void bind_sweep(py::module_& module) {
  module.def("_sweep_grid", &sweep_grid);
  module.def("_sweep_points", &sweep_points);
  py::list limiters;
  for (BatchLimiter limiter : {BatchLimiter::kConcurrency, BatchLimiter::kMaxRunningRequests,
                               BatchLimiter::kKvMemory, BatchLimiter::kWindowMemory}) {
    limiters.append(std::string(name_of(limiter)));
  }
  module.attr("_batch_limiters") = py::tuple(limiters);
}

}  // namespace fulcrum::python
