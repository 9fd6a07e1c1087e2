// NIST StRD nonlinear regression: reader of the published files and the models they name.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "calibrate/least_squares.h"

namespace fulcrum::calibrate::nist {

struct Dataset {
  std::string name;
  std::vector<double> x, y;
  std::array<std::vector<double>, 2> starts;
  std::vector<double> certified;
  std::vector<double> certified_sd;
  double residual_sum_of_squares = 0.0;
  double residual_sd = 0.0;
};

/// Reads tests/calibrate/nist/NAME.dat; throws std::runtime_error if it is not of the known form.
Dataset read_dataset(const std::string& name);

/// The names with a model here.
std::vector<std::string> dataset_names();

/// Least squares on the dataset from published start 0 or 1, derivatives by jets.
LeastSquaresProblem make_problem(const Dataset& dataset, int start);

}  // namespace fulcrum::calibrate::nist
