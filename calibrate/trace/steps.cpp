#include "calibrate/trace/steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace fulcrum::calibrate {
namespace {

/// The period is judged on this many activities at most: more add time, not certainty.
constexpr std::size_t kJudgedActivities = 200'000;
constexpr std::size_t kMostCandidates = 128;
constexpr std::size_t kMostStride = 8;
/// A kernel is regular when it is launched equally often in this share of the steps: a strict
/// majority, so that prefill between steps does not hide a loop.
constexpr double kInMostSteps = 0.6;
/// A candidate with this share of the most regular kernels is as good; of those the shortest period
/// wins. A layer lacks embedding, head and sampling, many kernels if little time.
constexpr double kAsGood = 0.9;
/// Below this share of GPU time in regular kernels there is no loop to speak of.
constexpr double kLeastRegularity = 0.5;
/// Steps whose launches differ by more from the commonest number are another kind of step.
constexpr double kSameLength = 0.02;

/// Kernels that run equally often in most segments.
struct Regularity {
  std::size_t num_names = 0;
  double time_fraction = 0.0;  ///< of the GPU time between the first mark and the last
};

struct Candidate {
  std::uint32_t name = 0;
  std::size_t stride = 1;
  std::size_t num_steps = 0;
  Regularity regularity;
};

using Places = std::vector<std::size_t>;

Places every(const Places& places, std::size_t stride) {
  Places result;
  for (std::size_t i = 0; i < places.size(); i += stride) result.push_back(places[i]);
  return result;
}

/// Calls `visit(name, launches)` for every name of every segment between the marks.
template <class Visit>
void each_count(const std::vector<GpuActivity>& activities, const Places& marks,
                std::vector<std::uint32_t>& counts, const Visit& visit) {
  std::vector<std::uint32_t> touched;
  for (std::size_t segment = 0; segment + 1 < marks.size(); ++segment) {
    for (std::size_t i = marks[segment]; i < marks[segment + 1]; ++i) {
      if (counts[activities[i].name]++ == 0) touched.push_back(activities[i].name);
    }
    for (const std::uint32_t name : touched) {
      visit(name, counts[name]);
      counts[name] = 0;
    }
    touched.clear();
  }
}

Regularity regularity_of(const std::vector<GpuActivity>& activities, const Places& marks,
                         std::size_t num_names) {
  std::vector<std::uint32_t> counts(num_names, 0);
  // Majority vote (Boyer and Moore), then a recount of the winner.
  std::vector<std::uint32_t> winner(num_names, 0);
  std::vector<std::uint32_t> votes(num_names, 0);
  each_count(activities, marks, counts, [&](std::uint32_t name, std::uint32_t count) {
    if (votes[name] == 0) winner[name] = count;
    votes[name] = winner[name] == count ? votes[name] + 1 : votes[name] - 1;
  });
  std::vector<std::uint32_t> agreeing(num_names, 0);
  each_count(activities, marks, counts, [&](std::uint32_t name, std::uint32_t count) {
    if (winner[name] == count) ++agreeing[name];
  });
  const double needed = kInMostSteps * static_cast<double>(marks.size() - 1);
  const auto is_regular = [&](std::uint32_t name) {
    return static_cast<double>(agreeing[name]) >= needed;
  };
  Regularity result;
  for (std::uint32_t name = 0; name < num_names; ++name) result.num_names += is_regular(name);
  double regular = 0.0;
  double total = 0.0;
  for (std::size_t i = marks.front(); i < marks.back(); ++i) {
    const auto duration = static_cast<double>(activities[i].duration_ns);
    total += duration;
    if (is_regular(activities[i].name)) regular += duration;
  }
  result.time_fraction = total > 0.0 ? regular / total : 0.0;
  return result;
}

std::vector<Step> steps_between(const Places& marks) {
  std::vector<Step> steps;
  std::map<std::size_t, std::size_t> lengths;
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    steps.push_back({marks[i], marks[i + 1], false});
    ++lengths[marks[i + 1] - marks[i]];
  }
  const auto common = std::max_element(lengths.begin(), lengths.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
  if (common == lengths.end()) return steps;
  const auto length = static_cast<double>(common->first);
  for (Step& step : steps) {
    step.typical =
        std::abs(static_cast<double>(step.last - step.first) - length) <= kSameLength * length;
  }
  return steps;
}

StepSearch search_result(const std::vector<Step>& steps, const std::string& anchor,
                         std::size_t stride, double regularity) {
  return {.steps = steps, .anchor = anchor, .anchor_stride = stride, .regularity = regularity};
}

}  // namespace

std::size_t StepSearch::num_typical() const {
  return static_cast<std::size_t>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.typical; }));
}

StepSearch find_steps(const std::vector<GpuActivity>& activities,
                      const std::vector<std::string>& names,
                      const std::optional<std::regex>& anchor) {
  std::unordered_map<std::uint32_t, Places> places;
  for (std::size_t i = 0; i < activities.size(); ++i) places[activities[i].name].push_back(i);

  if (anchor) {
    Places marks;
    std::string found;
    for (const auto& [name, at] : places) {
      if (!std::regex_search(names[name], *anchor)) continue;
      if (found.empty()) found = names[name];
      marks.insert(marks.end(), at.begin(), at.end());
    }
    if (marks.size() < 2) return {};
    std::sort(marks.begin(), marks.end());
    return search_result(steps_between(marks), found, 1,
                         regularity_of(activities, marks, names.size()).time_fraction);
  }

  const std::size_t num_judged = std::min(activities.size(), kJudgedActivities);
  const std::vector<GpuActivity> judged(
      activities.begin(), activities.begin() + static_cast<std::ptrdiff_t>(num_judged));
  std::vector<std::pair<std::size_t, std::uint32_t>> rare;  // count, name
  std::unordered_map<std::uint32_t, Places> judged_places;
  for (std::size_t i = 0; i < num_judged; ++i) judged_places[judged[i].name].push_back(i);
  for (const auto& [name, at] : judged_places) {
    if (at.size() >= 3) rare.emplace_back(at.size(), name);
  }
  std::sort(rare.begin(), rare.end());
  // Rarest first, but every order of magnitude of counts gets its chance.
  std::vector<std::uint32_t> candidates;
  std::map<std::size_t, std::size_t> per_count;
  for (const auto& [count, name] : rare) {
    if (++per_count[count] <= 3) candidates.push_back(name);
    if (candidates.size() >= kMostCandidates) break;
  }

  std::vector<Candidate> tried;
  const auto try_all = [&](std::size_t stride) {
    for (const std::uint32_t name : candidates) {
      const Places marks = every(judged_places[name], stride);
      if (marks.size() < 3) continue;
      tried.push_back({name, stride, marks.size() - 1, regularity_of(judged, marks, names.size())});
    }
  };
  const auto best_of = [&] {
    Regularity best;
    for (const Candidate& candidate : tried) {
      if (candidate.regularity.num_names > best.num_names) best = candidate.regularity;
    }
    return best;
  };
  for (std::size_t stride = 1; stride <= kMostStride; ++stride) {
    const std::size_t before = best_of().num_names;
    try_all(stride);
    // Longer strides only help where no kernel runs once a step.
    if (stride > 1 && best_of().num_names <= before && stride >= 3) break;
  }
  const auto needed = kAsGood * static_cast<double>(best_of().num_names);
  const Candidate* chosen = nullptr;
  for (const Candidate& candidate : tried) {
    if (static_cast<double>(candidate.regularity.num_names) < needed) continue;
    if (candidate.regularity.time_fraction < kLeastRegularity) continue;
    if (chosen == nullptr || candidate.num_steps > chosen->num_steps ||
        (candidate.num_steps == chosen->num_steps && names[candidate.name] < names[chosen->name])) {
      chosen = &candidate;
    }
  }
  if (chosen == nullptr) return {};
  return search_result(steps_between(every(places[chosen->name], chosen->stride)),
                       names[chosen->name], chosen->stride, chosen->regularity.time_fraction);
}

}  // namespace fulcrum::calibrate
