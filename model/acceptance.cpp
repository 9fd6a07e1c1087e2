#include "model/acceptance.h"

#include <algorithm>
#include <cmath>

#include "model/speculation.h"

namespace fulcrum {
namespace {

/// Bisection on a rising function over [low, high].
template <typename Function>
double solve_rising(Function f, double target, double low, double high) {
  constexpr int kHalvings = 200;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    (f(middle) < target ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

std::vector<double> conditional_acceptance(std::span<const double> reached) {
  std::vector<double> conditional;
  double before = 1.0;
  for (double reach : reached) {
    conditional.push_back(before > 0.0 ? std::clamp(reach / before, 0.0, 1.0) : 0.0);
    before = reach;
  }
  return conditional;
}

std::vector<double> acceptance_for(std::span<const double> conditional, int draft_tokens) {
  const auto wanted = static_cast<std::size_t>(std::max(0, draft_tokens));
  std::vector<double> positions(
      conditional.begin(),
      conditional.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, conditional.size())));
  double decline = 1.0;
  const std::size_t n = conditional.size();
  if (n >= 2 && conditional.front() > 0.0) {
    decline = std::min(
        1.0, std::pow(conditional.back() / conditional.front(), 1.0 / static_cast<double>(n - 1)));
  }
  double last = n > 0 ? conditional.back() : 0.0;
  while (positions.size() < wanted) {
    last *= decline;
    positions.push_back(last);
  }
  return positions;
}

std::optional<std::vector<double>> positions_from_accept_length(double mean, int draft_tokens,
                                                                std::span<const double> shape) {
  if (draft_tokens < 1 || !(mean > 1.0) || !(mean < 1.0 + draft_tokens)) return std::nullopt;
  const std::vector<double> base = acceptance_for(shape, draft_tokens);
  const auto powered = [&](double exponent) {
    std::vector<double> positions = base;
    for (double& a : positions) a = std::pow(a, exponent);
    return positions;
  };
  // The exponent runs from infinity (nothing accepted) to zero (all accepted).
  const double strictness = solve_rising(
      [&](double u) { return accept_length(powered((1.0 - u) / std::max(u, 1e-300))); }, mean, 0.0,
      1.0);
  return powered((1.0 - strictness) / strictness);
}

std::optional<std::vector<double>> acceptance_from_counts(std::span<const double> steps) {
  double tried = 0.0;
  for (double n : steps) tried += n;
  if (steps.empty() || tried <= 0.0) return std::nullopt;
  std::vector<double> positions;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    const double accepted = tried - steps[i];
    positions.push_back(tried > 0.0 ? std::clamp(accepted / tried, 0.0, 1.0) : 0.0);
    tried = accepted;
  }
  return positions;
}

double constant_acceptance(double mean, int draft_tokens) {
  return solve_rising(
      [&](double a) {
        return accept_length(std::vector<double>(static_cast<std::size_t>(draft_tokens), a));
      },
      mean, 0.0, 1.0);
}

}  // namespace fulcrum
