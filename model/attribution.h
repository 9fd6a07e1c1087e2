// Order-independent attribution of a difference to its causes (Shapley values, F16).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace fulcrum {

/// phi_i = mean over all orders of value(before i, with i) - value(before i): the parts sum to
/// value(all) - value(none) whatever the interactions. `value` takes a bit mask of the causes that
/// are switched on. Exact: 2^num_causes evaluations, num_causes at most 20.
/// Source: Shapley, A value for n-person games, 1953.
template <typename Value>
std::vector<double> shapley_values(int num_causes, const Value& value) {
  const std::uint32_t subsets = 1u << num_causes;
  std::vector<double> values(subsets);
  for (std::uint32_t mask = 0; mask < subsets; ++mask) values[mask] = value(mask);
  // weight(s) = s! (n - 1 - s)! / n! of a subset of s causes that lacks i.
  std::vector<double> weight(static_cast<std::size_t>(num_causes));
  weight[0] = 1.0 / num_causes;
  for (int s = 1; s < num_causes; ++s) {
    weight[static_cast<std::size_t>(s)] =
        weight[static_cast<std::size_t>(s - 1)] * s / (num_causes - s);
  }
  std::vector<double> phi(static_cast<std::size_t>(num_causes), 0.0);
  for (std::uint32_t mask = 0; mask < subsets; ++mask) {
    const auto size = static_cast<std::size_t>(std::popcount(mask));
    for (int i = 0; i < num_causes; ++i) {
      const std::uint32_t bit = 1u << i;
      if ((mask & bit) != 0) continue;
      phi[static_cast<std::size_t>(i)] += weight[size] * (values[mask | bit] - values[mask]);
    }
  }
  return phi;
}

}  // namespace fulcrum
