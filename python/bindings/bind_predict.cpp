#include <pybind11/stl.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "model/io/write_results.h"
#include "model/kernel_roofline.h"
#include "model/predict.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace fulcrum::python {
namespace {

/// None for what has no value: a deployment that does not fit.
py::object interval_or_none(const Interval& interval) {
  return interval.p50 > 0.0 ? py::cast(interval) : py::object(py::none());
}

std::string interval_text(const Interval& interval) {
  char text[96];
  std::snprintf(text, sizeof text, "Interval(p05=%.6g, p50=%.6g, p95=%.6g)", interval.p05,
                interval.p50, interval.p95);
  return text;
}

void bind_interval(py::module_& module) {
  py::class_<Interval>(module, "Interval")
      .def(py::init([](double p05, double p50, double p95) {
             return Interval{p05, p50, p95};
           }),
           py::arg("p05"), py::arg("p50"), py::arg("p95"))
      .def_readonly("p05", &Interval::p05)
      .def_readonly("p50", &Interval::p50)
      .def_readonly("p95", &Interval::p95)
      .def("__iter__",
           [](const Interval& self) {
             return py::iter(py::make_tuple(self.p05, self.p50, self.p95));
           })
      .def("__eq__",
           [](const Interval& a, const Interval& b) {
             return a.p05 == b.p05 && a.p50 == b.p50 && a.p95 == b.p95;
           })
      .def("__repr__", &interval_text);
}

}  // namespace

void bind_predict(py::module_& module) {
  bind_interval(module);
  using Line = BreakdownLine;
  py::class_<Line>(module, "BreakdownLine")
      .def_readonly("op", &Line::op)
      .def_property_readonly("family", [](const Line& l) { return std::string(name_of(l.family)); })
      .def_readonly("kernel", &Line::kernel)
      .def_readonly("count", &Line::count)
      .def_readonly("seconds", &Line::seconds)
      .def_readonly("share_fraction", &Line::share_fraction)
      .def_property_readonly("limiter",
                             [](const Line& l) { return std::string(name_of(l.limiter)); })
      .def_readonly("floor_seconds", &Line::floor_seconds)
      .def_property_readonly("basis", [](const Line& l) { return std::string(name_of(l.basis)); })
      .def("__repr__", [](const Line& l) {
        char text[96];
        std::snprintf(text, sizeof text, ", seconds=%.6g, share_fraction=%.4f)", l.seconds,
                      l.share_fraction);
        return "BreakdownLine(op='" + l.op + "', kernel='" + l.kernel + "'" + text;
      });
  using Point = PredictionPoint;
  py::class_<Point>(module, "PredictionPoint")
      .def_readonly("concurrency", &Point::concurrency)
      .def_readonly("effective_batch", &Point::effective_batch)
      .def_property_readonly("batch_limiter",
                             [](const Point& p) { return std::string(name_of(p.batch_limiter)); })
      .def_readonly("accept_length", &Point::accept_length)
      .def_property_readonly("step_seconds",
                             [](const Point& p) { return interval_or_none(p.step_seconds); })
      .def_property_readonly("tpot_seconds",
                             [](const Point& p) { return interval_or_none(p.tpot_seconds); })
      .def_property_readonly("ttft_seconds",
                             [](const Point& p) { return interval_or_none(p.ttft_seconds); })
      .def_property_readonly(
          "output_tokens_per_second",
          [](const Point& p) { return interval_or_none(p.output_tokens_per_second); })
      .def_property_readonly(
          "output_tokens_per_second_per_user",
          [](const Point& p) { return interval_or_none(p.output_tokens_per_second_per_user); })
      .def_readonly("prefill_seconds", &Point::prefill_seconds)
      .def_readonly("eager", &Point::eager)
      .def_property_readonly("fits", [](const Point& p) { return p.memory.fits; })
      .def_readonly("breakdown", &Point::breakdown)
      .def("__repr__", [](const Point& p) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "PredictionPoint(concurrency=%g, effective_batch=%g, "
                      "output_tokens_per_second=%.4g, step_seconds=%.4g)",
                      p.concurrency, p.effective_batch, p.output_tokens_per_second.p50,
                      p.step_seconds.p50);
        return std::string(text);
      });
  py::class_<Prediction>(module, "Prediction")
      .def_readonly("scenario", &Prediction::scenario)
      .def_readonly("points", &Prediction::points)
      .def_readonly("warnings", &Prediction::warnings)
      .def("_text", [](const Prediction& self) { return io::to_json(self).dump(); })
      .def("__len__", [](const Prediction& self) { return self.points.size(); })
      .def("__repr__", [](const Prediction& self) {
        return "Prediction(scenario='" + self.scenario + "', " +
               std::to_string(self.points.size()) + " points)";
      });
  module.def(
      "_predict",
      [](const Scenario& scenario) {
        Prediction prediction = predict(scenario.deployment);
        prediction.warnings.insert(prediction.warnings.begin(), scenario.warnings.begin(),
                                   scenario.warnings.end());
        return prediction;
      },
      py::call_guard<py::gil_scoped_release>());
  module.def(
      "_predict_at",
      [](const Scenario& scenario, const std::vector<double>& concurrency) {
        Prediction prediction = predict(at_concurrency(scenario, concurrency));
        prediction.warnings.insert(prediction.warnings.begin(), scenario.warnings.begin(),
                                   scenario.warnings.end());
        return prediction;
      },
      py::call_guard<py::gil_scoped_release>());
  // What the library itself takes, to hold the cost of a call from Python against.
  module.def("_seconds_per_predict", [](const Scenario& scenario, int repeats) {
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const std::clock_t start = std::clock();
      for (int i = 0; i < repeats; ++i) predict(scenario.deployment);
      best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / repeats);
    }
    return best;
  });
  module.def("_step_roofline", [](const Scenario& scenario, double concurrency) {
    const StepRoofline roofline = step_roofline(scenario.deployment, concurrency);
    py::list kernels;
    for (const KernelRoofline& k : roofline.kernels) {
      kernels.append(
          py::dict(py::arg("op") = k.op, py::arg("family") = std::string(name_of(k.family)),
                   py::arg("kernel") = k.kernel, py::arg("count") = k.count,
                   py::arg("seconds") = k.seconds, py::arg("dram_bytes") = k.dram_bytes,
                   py::arg("flop") = k.flop, py::arg("flop_per_second") = k.flop_per_second,
                   py::arg("flop_per_byte") = k.flop_per_byte,
                   py::arg("peak_flop_per_second") = k.peak_flop_per_second));
    }
    return py::make_tuple(roofline.dram_bandwidth_bytes_per_second, kernels);
  });
}

}  // namespace fulcrum::python
