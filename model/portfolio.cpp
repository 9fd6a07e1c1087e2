#include "model/portfolio.h"

#include <algorithm>
#include <map>
#include <set>

namespace fulcrum {
namespace {

using Set = std::vector<std::size_t>;

/// Below this nobody sees a difference, and noise of the search would fill the set.
constexpr double kLeastGain = 1.001;

class PricedSets {
 public:
  explicit PricedSets(const PortfolioValue& value) : value_(value) {}

  std::optional<double> operator()(const Set& set) {
    const auto [it, fresh] = known_.try_emplace(set);
    if (fresh) it->second = value_(set);
    return it->second;
  }
  int count() const { return static_cast<int>(known_.size()); }

 private:
  const PortfolioValue& value_;
  std::map<Set, std::optional<double>> known_;
};

Set with(const Set& set, std::size_t option) {
  Set out = set;
  out.insert(std::upper_bound(out.begin(), out.end(), option), option);
  return out;
}

double effort_of(const Set& set, std::span<const double> effort_minutes) {
  double sum = 0.0;
  for (std::size_t option : set) sum += effort_minutes[option];
  return sum;
}

struct Found {
  Set set;
  double value = 0.0;
};

/// The best sets that are one option larger than those of the beam.
std::vector<Found> grow(const std::vector<Found>& beam, std::span<const double> effort_minutes,
                        double budget_minutes, std::size_t beam_width, PricedSets& priced) {
  std::vector<Found> grown;
  std::set<Set> seen;
  for (const Found& found : beam) {
    const double spent = effort_of(found.set, effort_minutes);
    for (std::size_t option = 0; option < effort_minutes.size(); ++option) {
      if (std::binary_search(found.set.begin(), found.set.end(), option)) continue;
      if (spent + effort_minutes[option] > budget_minutes) continue;
      Set larger = with(found.set, option);
      if (!seen.insert(larger).second) continue;
      const std::optional<double> value = priced(larger);
      if (value && *value > found.value * kLeastGain) grown.push_back({std::move(larger), *value});
    }
  }
  std::stable_sort(grown.begin(), grown.end(),
                   [](const Found& a, const Found& b) { return a.value > b.value; });
  if (grown.size() > beam_width) grown.resize(beam_width);
  return grown;
}

/// The set's options by what each adds to those before it.
std::vector<PortfolioStep> in_order(const Set& set, std::span<const double> effort_minutes,
                                    PricedSets& priced) {
  std::vector<PortfolioStep> steps;
  Set taken;
  while (taken.size() < set.size()) {
    PortfolioStep next;
    for (std::size_t option : set) {
      if (std::binary_search(taken.begin(), taken.end(), option)) continue;
      const double value = priced(with(taken, option)).value_or(0.0);
      if (value > next.value) next = {option, effort_minutes[option], value};
    }
    if (next.value <= 0.0) break;  // no order of single steps leads there
    steps.push_back(next);
    taken = with(taken, next.option);
  }
  return steps;
}

}  // namespace

Portfolio best_portfolio(std::span<const double> effort_minutes, double budget_minutes,
                         const PortfolioValue& value, std::size_t beam_width) {
  PricedSets priced(value);
  Portfolio portfolio;
  const std::optional<double> base = priced({});
  if (!base) return portfolio;
  portfolio.base_value = *base;
  Found best{{}, *base};
  std::vector<Found> beam{best};
  while (!beam.empty()) {
    beam = grow(beam, effort_minutes, budget_minutes, beam_width, priced);
    if (!beam.empty() && beam.front().value > best.value) best = beam.front();
  }
  portfolio.steps = in_order(best.set, effort_minutes, priced);
  portfolio.effort_minutes = effort_of(best.set, effort_minutes);
  portfolio.sets_priced = priced.count();
  return portfolio;
}

}  // namespace fulcrum
