// The parts of the extension module, each in its own file.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "model/io/load_scenario.h"

namespace fulcrum::python {

/// A scenario with what it names resolved. Immutable: changes make a new one.
struct Scenario {
  io::ScenarioDocument document;
  Deployment deployment;
  std::vector<std::string> warnings;
};

/// Resolves; throws InputError.
Scenario resolve(io::ScenarioDocument document);

/// The scenario's deployment at other concurrencies; none given: its own.
Deployment at_concurrency(const Scenario& scenario, const std::vector<double>& concurrency);

void bind_scenario(pybind11::module_& module);
void bind_predict(pybind11::module_& module);
void bind_analyses(pybind11::module_& module);
void bind_sweep(pybind11::module_& module);
void bind_calibrate(pybind11::module_& module);

}  // namespace fulcrum::python
