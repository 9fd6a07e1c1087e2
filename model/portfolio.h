// The best set of changes under a time budget. Gains do not multiply, so every set is priced anew.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fulcrum {

/// What a set of options (ascending indices) is worth, e.g. output tokens/s; nothing where they
/// cannot be combined.
using PortfolioValue = std::function<std::optional<double>(std::span<const std::size_t>)>;

struct PortfolioStep {
  std::size_t option = 0;
  double effort_minutes = 0.0;
  double value = 0.0;  ///< of the set up to and with this option
};

struct Portfolio {
  double base_value = 0.0;
  std::vector<PortfolioStep> steps;  ///< largest step first, given those before it
  double effort_minutes = 0.0;
  int sets_priced = 0;
  double value() const { return steps.empty() ? base_value : steps.back().value; }
};

/// Beam search over sets whose summed effort is within the budget; an option must add at least
/// 0.1 % to be in the set. Exact while fewer than `beam_width` sets of each size are worth
/// keeping, else the best found. `effort_minutes[i]` belongs to option i.
Portfolio best_portfolio(std::span<const double> effort_minutes, double budget_minutes,
                         const PortfolioValue& value, std::size_t beam_width = 6);

}  // namespace fulcrum
