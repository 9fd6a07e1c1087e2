#include "model/io/rank_levers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "model/errors.h"

namespace fulcrum::io {

LeverRanking::LeverRanking(const ScenarioDocument& scenario, const std::vector<std::string>& names,
                           std::vector<std::string>& warnings)
    : scenario_(scenario), before_(resolve_scenario(scenario, warnings, &cache_)) {
  pull_all(names.empty() ? lever_names() : names, !names.empty(), warnings);
}

void LeverRanking::pull_all(const std::vector<std::string>& names, bool named_by_user,
                            std::vector<std::string>& warnings) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) continue;
    LeverDocument lever = load_lever(name);
    if (!lever.architecture.empty() && lever.architecture != before_.kernels.architecture) {
      if (named_by_user) {
        throw InputError({"command line", "--lever",
                          "\"" + name + "\" is for " + lever.architecture + ", the scenario for " +
                              before_.kernels.architecture,
                          ""});
      }
      continue;
    }
    const ScenarioDocument changed = pull(scenario_, lever);
    if (changed.value == scenario_.value) {
      warnings.push_back(name + ": the scenario already has it");
      continue;
    }
    std::vector<std::string> ignored;
    try {
      Deployment after = resolve_scenario(changed, ignored, &cache_);
      levers_.push_back({std::move(lever), std::move(after)});
    } catch (const InputError& error) {
      // The scenario alone is sound, so it is the lever that does not apply to it.
      const std::string why = name + " does not apply to this scenario: " + error.what();
      if (named_by_user) throw InputError({"command line", "--lever", why, ""});
      warnings.push_back(why);
    }
  }
}

LeverRanking::Pulled LeverRanking::pull_set(std::span<const std::size_t> set) {
  ScenarioDocument changed = scenario_;
  std::vector<const LeverDocument*> documents;
  for (std::size_t i : set) {
    changed = pull(changed, levers_[i].document);
    documents.push_back(&levers_[i].document);
  }
  Pulled pulled;
  pulled.document.lever = combined(documents);
  std::vector<std::string> ignored;
  pulled.after = resolve_scenario(changed, ignored, &cache_);
  return pulled;
}

bool LeverRanking::has_alternatives(std::span<const std::size_t> set) const {
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (std::size_t j = i + 1; j < set.size(); ++j) {
      if (are_alternatives(levers_[set[i]].document, levers_[set[j]].document)) return true;
    }
  }
  return false;
}

std::vector<LeverResult> LeverRanking::at(double concurrency, bool pairs) {
  std::vector<LeverResult> results;
  for (const Pulled& lever : levers_) {
    results.push_back(evaluate_lever(lever.document.lever, before_, lever.after, concurrency));
  }
  for (std::size_t i = 0; pairs && i < levers_.size(); ++i) {
    for (std::size_t j = i + 1; j < levers_.size(); ++j) {
      const std::array set{i, j};
      if (has_alternatives(set)) continue;
      const Pulled both = pull_set(set);
      results.push_back(evaluate_lever(both.document.lever, before_, both.after, concurrency));
    }
  }
  std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) {
    return a.gain_ratio.p50 > b.gain_ratio.p50;
  });
  return results;
}

LeverPortfolio LeverRanking::plan(double budget_minutes, double concurrency) {
  std::vector<double> effort_minutes;
  for (const Pulled& lever : levers_) {
    effort_minutes.push_back(lever.document.lever.effort_minutes);
  }
  const PortfolioValue value = [&](std::span<const std::size_t> set) -> std::optional<double> {
    if (has_alternatives(set)) return std::nullopt;
    try {
      const Throughput now =
          closed_loop_throughput(set.empty() ? before_ : pull_set(set).after, concurrency);
      if (now.batch.requests < 1.0) return std::nullopt;
      return now.output_tokens_per_second;
    } catch (const InputError&) {
      return std::nullopt;  // each is sound alone, together they are no scenario
    }
  };
  LeverPortfolio out;
  out.concurrency = concurrency;
  out.budget_minutes = budget_minutes;
  out.portfolio = best_portfolio(effort_minutes, budget_minutes, value);
  std::vector<std::size_t> set;
  for (const PortfolioStep& step : out.portfolio.steps) {
    out.names.push_back(levers_[step.option].document.lever.name);
    set.push_back(step.option);
  }
  out.gain_ratio = {1.0, 1.0, 1.0};
  if (!set.empty()) {
    const Pulled all = pull_set(set);
    out.gain_ratio = evaluate_lever(all.document.lever, before_, all.after, concurrency).gain_ratio;
  }
  return out;
}

}  // namespace fulcrum::io
