#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "model/errors.h"
#include "model/io/data_dir.h"
#include "model/io/json_reader.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace fulcrum::python {
namespace {

/// Stems of the files of data/<folder>, sorted.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  const auto directory = std::filesystem::path(io::data_dir()) / folder;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

py::dict sourced(const char* what, const char* unit, const Sourced& number) {
  py::dict out(py::arg("what") = what, py::arg("value") = number.value, py::arg("unit") = unit,
               py::arg("basis") = std::string(name_of(number.basis)),
               py::arg("source") = number.source, py::arg("note") = number.note);
  out["standard_error"] = py::none();
  if (number.standard_error) out["standard_error"] = *number.standard_error;
  return out;
}

py::list hardware_numbers(const Hardware& hardware) {
  py::list out;
  out.append(sourced("SMs", "1", hardware.num_sms));
  out.append(sourced("SM clock", "MHz", hardware.sm_clock_mhz));
  out.append(sourced("memory bandwidth", "GB/s", hardware.memory_bandwidth_gb_per_s));
  out.append(sourced("memory capacity", "MiB", hardware.memory_capacity_mib));
  out.append(sourced("L2", "MiB", hardware.l2_mib));
  out.append(sourced("power cap", "W", hardware.power_cap_w));
  constexpr const char* kFormats[] = {"FP32", "TF32", "BF16", "FP8", "FP4"};
  for (std::size_t i = 0; i < hardware.peak_dense_tflop_per_s.size(); ++i) {
    const auto& peak = hardware.peak_dense_tflop_per_s[i];
    const std::string what = std::string("dense ") + kFormats[i] + " peak";
    if (peak) out.append(sourced(what.c_str(), "TFLOP/s", *peak));
  }
  return out;
}

/// What each kernel's cost rests on, one row per kernel that the step runs.
py::list kernel_numbers(const Deployment& deployment) {
  py::list out;
  for (const StepOp& op : build_step_graph(deployment.model, deployment.graph_settings()).ops) {
    const KernelBinding& bound = deployment.kernels.binding(op.id);
    if (op.count == 0.0 || bound.law == "fused") continue;
    out.append(py::dict(py::arg("op") = (op.draft ? "draft." : "") + std::string(name_of(op.id)),
                        py::arg("kernel") = bound.kernel, py::arg("law") = bound.law,
                        py::arg("basis") = std::string(name_of(bound.basis)),
                        py::arg("log_sigma") = bound.log_sigma, py::arg("source") = bound.source));
  }
  return out;
}

}  // namespace

Scenario resolve(io::ScenarioDocument document) {
  Scenario scenario;
  scenario.document = std::move(document);
  scenario.deployment = io::resolve_scenario(scenario.document, scenario.warnings);
  return scenario;
}

Deployment at_concurrency(const Scenario& scenario, const std::vector<double>& concurrency) {
  Deployment deployment = scenario.deployment;
  if (!concurrency.empty()) {
    for (double c : concurrency) {
      constexpr double kMost = 1e6;
      if (!(c >= 1.0 && c <= kMost) || c != std::floor(c)) {
        throw InputError({"call", "concurrency", "holds " + std::to_string(c),
                          "whole numbers from 1 to 1000000"});
      }
    }
    // As io::set_concurrency: prompts stay with the scenario's own concurrencies.
    std::vector<double> prompts;
    for (double c : concurrency) {
      if (const auto known = deployment.workload.prompts_at(c)) prompts.push_back(*known);
    }
    if (prompts.size() != concurrency.size()) prompts.clear();
    deployment.workload.concurrency = concurrency;
    deployment.workload.num_prompts = prompts;
  }
  return deployment;
}

void bind_scenario(py::module_& module) {
  py::class_<Scenario>(module, "Scenario")
      .def_static("_load", [](const std::string& name) { return resolve(io::read_scenario(name)); })
      .def_static("_parse",
                  [](const std::string& text, const std::string& file) {
                    return resolve({file, io::parse_json(text, file)});
                  })
      .def("_with",
           [](const Scenario& self, const std::vector<std::pair<std::string, std::string>>& sets) {
             io::ScenarioDocument document = self.document;
             for (const auto& [path, text] : sets) {
               io::set_value(document, path, io::parse_json(text, path));
             }
             return resolve(std::move(document));
           })
      .def("_with_concurrency",
           [](const Scenario& self, const std::vector<double>& concurrency) {
             io::ScenarioDocument document = self.document;
             io::set_concurrency(document, concurrency);
             return resolve(std::move(document));
           })
      .def("_text", [](const Scenario& self) { return self.document.value.dump(); })
      .def("_hardware_numbers",
           [](const Scenario& self) { return hardware_numbers(self.deployment.hardware); })
      .def("_kernel_numbers", [](const Scenario& self) { return kernel_numbers(self.deployment); })
      .def_property_readonly("file", [](const Scenario& self) { return self.document.file; })
      .def_property_readonly("name", [](const Scenario& self) { return self.deployment.name; })
      .def_property_readonly("description",
                             [](const Scenario& self) { return self.deployment.description; })
      .def_property_readonly("model",
                             [](const Scenario& self) { return self.deployment.model.name; })
      .def_property_readonly("hardware",
                             [](const Scenario& self) { return self.deployment.hardware.name; })
      .def_property_readonly("hardware_label",
                             [](const Scenario& self) { return self.deployment.hardware.label; })
      .def_property_readonly("num_gpus",
                             [](const Scenario& self) { return self.deployment.num_gpus; })
      .def_property_readonly("tensor_parallel",
                             [](const Scenario& self) { return self.deployment.tensor_parallel; })
      .def_property_readonly("kernel_set",
                             [](const Scenario& self) { return self.deployment.kernels.name; })
      .def_property_readonly(
          "concurrency", [](const Scenario& self) { return self.deployment.workload.concurrency; })
      .def_property_readonly(
          "input_tokens",
          [](const Scenario& self) { return self.deployment.workload.input_tokens; })
      .def_property_readonly(
          "output_tokens",
          [](const Scenario& self) { return self.deployment.workload.output_tokens; })
      .def_property_readonly(
          "draft_tokens",
          [](const Scenario& self) { return self.deployment.speculation.draft_tokens; })
      .def_property_readonly(
          "acceptance", [](const Scenario& self) { return self.deployment.speculation.acceptance; })
      .def_property_readonly(
          "acceptance_source",
          [](const Scenario& self) { return self.deployment.speculation.acceptance_source; })
      .def_readonly("warnings", &Scenario::warnings);
  module.def("data_dir", &io::data_dir,
             "The folder that named scenarios, GPUs and sets come from.");
  module.def("_names_in", &names_in);
}

}  // namespace fulcrum::python
