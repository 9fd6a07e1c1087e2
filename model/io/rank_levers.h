// Pulls levers on a scenario and ranks what they give.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/io/load_lever.h"
#include "model/io/write_results.h"
#include "model/levers.h"

namespace fulcrum::io {

/// The levers that apply to a scenario, each with the deployment it leads to.
class LeverRanking {
 public:
  /// `names` as the user gave them; empty: all shipped levers. Levers that do not apply to the
  /// scenario (another architecture, or nothing changes) are told in `warnings`, not dropped in
  /// silence; one that the user named and that cannot apply throws InputError.
  LeverRanking(const ScenarioDocument& scenario, const std::vector<std::string>& names,
               std::vector<std::string>& warnings);

  /// The scenario without any lever.
  const Deployment& before() const { return before_; }

  /// By falling gain. With `pairs` also every pair of levers, priced together.
  std::vector<LeverResult> at(double concurrency, bool pairs);

  /// The best set of levers within the budget.
  LeverPortfolio plan(double budget_minutes, double concurrency);

 private:
  struct Pulled {
    LeverDocument document;
    Deployment after;
  };
  void pull_all(const std::vector<std::string>& names, bool named_by_user,
                std::vector<std::string>& warnings);
  /// The levers of `set`, pulled together.
  Pulled pull_set(std::span<const std::size_t> set);
  bool has_alternatives(std::span<const std::size_t> set) const;

  ScenarioDocument scenario_;
  CalibrationCache cache_;
  Deployment before_;
  std::vector<Pulled> levers_;
};

}  // namespace fulcrum::io
