#include "tests/calibrate/nist_problems.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "calibrate/jet.h"

namespace fulcrum::calibrate::nist {
namespace {

using std::atan;
using std::cos;
using std::exp;
using std::pow;
using std::sin;
constexpr double kPi = 3.141592653589793238462643383279;

// Models as written in the files' headers; b is 0-based here.
const auto kMisra1a = [](const auto* b, double x) { return b[0] * (1.0 - exp(-b[1] * x)); };
const auto kMisra1b = [](const auto* b, double x) {
  return b[0] * (1.0 - pow(1.0 + b[1] * x / 2.0, -2.0));
};
const auto kMisra1c = [](const auto* b, double x) {
  return b[0] * (1.0 - pow(1.0 + 2.0 * b[1] * x, -0.5));
};
const auto kMisra1d = [](const auto* b, double x) {
  return b[0] * b[1] * x * pow(1.0 + b[1] * x, -1.0);
};
const auto kChwirut = [](const auto* b, double x) { return exp(-b[0] * x) / (b[1] + b[2] * x); };
const auto kLanczos = [](const auto* b, double x) {
  return b[0] * exp(-b[1] * x) + b[2] * exp(-b[3] * x) + b[4] * exp(-b[5] * x);
};
const auto kGauss = [](const auto* b, double x) {
  const auto u = (x - b[3]) / b[4];
  const auto v = (x - b[6]) / b[7];
  return b[0] * exp(-b[1] * x) + b[2] * exp(-u * u) + b[5] * exp(-v * v);
};
const auto kDanWood = [](const auto* b, double x) { return b[0] * pow(x, b[1]); };
const auto kKirby2 = [](const auto* b, double x) {
  return (b[0] + b[1] * x + b[2] * x * x) / (1.0 + b[3] * x + b[4] * x * x);
};
const auto kCubicRatio = [](const auto* b, double x) {  // Hahn1 and Thurber
  return (b[0] + x * (b[1] + x * (b[2] + x * b[3]))) / (1.0 + x * (b[4] + x * (b[5] + x * b[6])));
};
const auto kMgh09 = [](const auto* b, double x) {
  return b[0] * (x * x + x * b[1]) / (x * x + x * b[2] + b[3]);
};
const auto kMgh10 = [](const auto* b, double x) { return b[0] * exp(b[1] / (x + b[2])); };
const auto kMgh17 = [](const auto* b, double x) {
  return b[0] + b[1] * exp(-x * b[3]) + b[2] * exp(-x * b[4]);
};
const auto kEnso = [](const auto* b, double x) {
  const double year = 2.0 * kPi * x / 12.0;
  const auto p = 2.0 * kPi * x / b[3];
  const auto q = 2.0 * kPi * x / b[6];
  return b[0] + b[1] * cos(year) + b[2] * sin(year) + b[4] * cos(p) + b[5] * sin(p) +
         b[7] * cos(q) + b[8] * sin(q);
};
const auto kRoszman1 = [](const auto* b, double x) {
  return b[0] - b[1] * x - atan(b[2] / (x - b[3])) / kPi;
};
const auto kRat42 = [](const auto* b, double x) { return b[0] / (1.0 + exp(b[1] - b[2] * x)); };
const auto kRat43 = [](const auto* b, double x) {
  return b[0] / pow(1.0 + exp(b[1] - b[2] * x), 1.0 / b[3]);
};
const auto kEckerle4 = [](const auto* b, double x) {
  const auto u = (x - b[2]) / b[1];
  return b[0] / b[1] * exp(-0.5 * u * u);
};
const auto kBennett5 = [](const auto* b, double x) { return b[0] * pow(b[1] + x, -1.0 / b[2]); };

template <std::size_t N, class Model>
ResidualFunction residuals_of(const Dataset& data, Model model) {
  return [x = data.x, y = data.y, model](const Eigen::VectorXd& b, Eigen::VectorXd& r,
                                         RowMatrix* jacobian) {
    std::array<Jet<N>, N> jets;
    for (std::size_t j = 0; j < N; ++j) jets[j] = Jet<N>::variable(b[static_cast<int>(j)], j);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      if (jacobian == nullptr) {
        r[row] = model(b.data(), x[i]) - y[i];
        continue;
      }
      const Jet<N> value = model(jets.data(), x[i]);
      r[row] = value.value - y[i];
      for (std::size_t j = 0; j < N; ++j) (*jacobian)(row, static_cast<int>(j)) = value.gradient[j];
    }
    return true;
  };
}

ResidualFunction residuals_by_name(const Dataset& d) {
  if (d.name == "Misra1a" || d.name == "BoxBOD") return residuals_of<2>(d, kMisra1a);
  if (d.name == "Misra1b") return residuals_of<2>(d, kMisra1b);
  if (d.name == "Misra1c") return residuals_of<2>(d, kMisra1c);
  if (d.name == "Misra1d") return residuals_of<2>(d, kMisra1d);
  if (d.name.starts_with("Chwirut")) return residuals_of<3>(d, kChwirut);
  if (d.name.starts_with("Lanczos")) return residuals_of<6>(d, kLanczos);
  if (d.name.starts_with("Gauss")) return residuals_of<8>(d, kGauss);
  if (d.name == "DanWood") return residuals_of<2>(d, kDanWood);
  if (d.name == "Kirby2") return residuals_of<5>(d, kKirby2);
  if (d.name == "Hahn1" || d.name == "Thurber") return residuals_of<7>(d, kCubicRatio);
  if (d.name == "MGH09") return residuals_of<4>(d, kMgh09);
  if (d.name == "MGH10") return residuals_of<3>(d, kMgh10);
  if (d.name == "MGH17") return residuals_of<5>(d, kMgh17);
  if (d.name == "ENSO") return residuals_of<9>(d, kEnso);
  if (d.name == "Roszman1") return residuals_of<4>(d, kRoszman1);
  if (d.name == "Rat42") return residuals_of<3>(d, kRat42);
  if (d.name == "Rat43") return residuals_of<4>(d, kRat43);
  if (d.name == "Eckerle4") return residuals_of<3>(d, kEckerle4);
  if (d.name == "Bennett5") return residuals_of<3>(d, kBennett5);
  throw std::runtime_error("no model for NIST dataset " + d.name);
}

}  // namespace

std::vector<std::string> dataset_names() {
  return {"Misra1a",  "Misra1b",  "Misra1c",  "Misra1d",  "Chwirut1", "Chwirut2", "DanWood",
          "Lanczos1", "Lanczos2", "Lanczos3", "Gauss1",   "Gauss2",   "Gauss3",   "Kirby2",
          "Hahn1",    "Thurber",  "MGH09",    "MGH10",    "MGH17",    "ENSO",     "Roszman1",
          "BoxBOD",   "Rat42",    "Rat43",    "Eckerle4", "Bennett5"};
}

Dataset read_dataset(const std::string& name) {
  const std::string path =
      std::string(FULCRUM_SOURCE_DIR) + "/tests/calibrate/nist/" + name + ".dat";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  Dataset data;
  data.name = name;
  std::string line;
  bool in_data = false;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    if (in_data) {
      double y = 0.0;
      double x = 0.0;
      if (words >> y >> x) {
        data.y.push_back(y);
        data.x.push_back(x);
      }
      continue;
    }
    // "  b1 =   500         250           2.3894212918E+02  2.7070075241E+00"
    std::string equals;
    double start1 = 0.0, start2 = 0.0, certified = 0.0, sd = 0.0;
    if (words >> word >> equals && word.starts_with("b") && equals == "=" &&
        words >> start1 >> start2 >> certified >> sd) {
      data.starts[0].push_back(start1);
      data.starts[1].push_back(start2);
      data.certified.push_back(certified);
      data.certified_sd.push_back(sd);
    }
    if (line.starts_with("Residual Sum of Squares:")) {
      data.residual_sum_of_squares = std::stod(line.substr(24));
    }
    if (line.starts_with("Residual Standard Deviation:")) {
      data.residual_sd = std::stod(line.substr(28));
    }
    in_data = line.starts_with("Data:") && line.find('x') != std::string::npos &&
              line.find("Response") == std::string::npos;
  }
  if (data.x.empty() || data.certified.empty()) throw std::runtime_error("bad form: " + path);
  return data;
}

LeastSquaresProblem make_problem(const Dataset& dataset, int start) {
  LeastSquaresProblem problem;
  problem.num_residuals = static_cast<Eigen::Index>(dataset.x.size());
  const std::vector<double>& values = dataset.starts.at(static_cast<std::size_t>(start));
  for (std::size_t j = 0; j < values.size(); ++j) {
    std::string unknown(1, 'b');
    unknown += std::to_string(j + 1);
    problem.unknowns.push_back({.name = unknown, .start = values[j]});
  }
  problem.evaluate = residuals_by_name(dataset);
  return problem;
}

}  // namespace fulcrum::calibrate::nist
