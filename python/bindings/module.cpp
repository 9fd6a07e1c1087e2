#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "model/errors.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

PYBIND11_MODULE(_fulcrum, module) {
  using namespace fulcrum;
  module.attr("__version__") = FULCRUM_VERSION;
  // Owned by the module, which lives as long as the interpreter.
  static PyObject* input_error =
      PyErr_NewException("fulcrum.InputError", PyExc_ValueError, nullptr);
  module.add_object("InputError", py::reinterpret_borrow<py::object>(input_error));
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const InputError& error) {
      py::list problems;
      for (const InputProblem& p : error.problems()) {
        problems.append(py::dict(py::arg("file") = p.file, py::arg("pointer") = p.pointer,
                                 py::arg("message") = p.message, py::arg("allowed") = p.allowed));
      }
      py::object value = py::reinterpret_borrow<py::object>(input_error)(error.what());
      value.attr("problems") = problems;
      PyErr_SetObject(input_error, value.ptr());
    }
  });
  python::bind_scenario(module);
  python::bind_predict(module);
  python::bind_analyses(module);
  python::bind_sweep(module);
  python::bind_calibrate(module);
}
