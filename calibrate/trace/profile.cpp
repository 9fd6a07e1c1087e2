#include "calibrate/trace/profile.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

namespace fulcrum::calibrate {
namespace {

constexpr double kSecondsPerNanosecond = 1e-9;

/// Sums over the typical steps, by kernel name; nanoseconds.
struct Sums {
  double launches = 0.0;
  double busy = 0.0;
  double exposed = 0.0;
  std::vector<float> durations;  ///< of launches, for the median; capped
};

struct Totals {
  std::unordered_map<std::uint32_t, Sums> by_name;
  std::vector<double> spans;
  double busy_sum = 0.0;
  double busy_union = 0.0;
  double idle = 0.0;
  double idle_in_graph = 0.0;
  double launches = 0.0;
  double graph_launches = 0.0;
};

/// Sweeps over activities [first, last) clipped to [begin, end): shares each instant among the
/// kernels that run in it and finds the instants in which none does.
void sweep(const std::vector<GpuActivity>& activities, const Step& step, std::int64_t begin,
           std::int64_t end, Totals& totals) {
  struct Ending {
    std::int64_t at;
    std::size_t index;
    bool operator>(const Ending& other) const { return at > other.at; }
  };
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> running;
  std::map<std::uint32_t, std::size_t> running_names;
  std::size_t num_running = 0;
  std::int64_t now = begin;
  const GpuActivity* last_ended = nullptr;

  const auto advance_to = [&](std::int64_t to) {
    to = std::min(to, end);
    if (to <= now) return;
    const auto span = static_cast<double>(to - now);
    if (num_running > 0) {
      totals.busy_union += span;
      for (const auto& [name, count] : running_names) {
        totals.by_name[name].exposed +=
            span * static_cast<double>(count) / static_cast<double>(num_running);
      }
    } else {
      totals.idle += span;
    }
    now = to;
  };
  const auto finish_until = [&](std::int64_t to) {
    while (!running.empty() && running.top().at <= to) {
      advance_to(running.top().at);
      last_ended = &activities[running.top().index];
      const auto found = running_names.find(last_ended->name);
      if (--found->second == 0) running_names.erase(found);
      --num_running;
      running.pop();
    }
  };
  for (std::size_t i = step.first; i < step.last; ++i) {
    const GpuActivity& activity = activities[i];
    finish_until(activity.start_ns);
    if (num_running == 0 && last_ended != nullptr && activity.start_ns > now && activity.in_graph &&
        last_ended->in_graph && last_ended->launch == activity.launch) {
      totals.idle_in_graph += static_cast<double>(std::min(activity.start_ns, end) - now);
    }
    advance_to(activity.start_ns);
    running.push({activity.start_ns + activity.duration_ns, i});
    ++running_names[activity.name];
    ++num_running;
  }
  finish_until(end);
  advance_to(end);
}

void add_step(const std::vector<GpuActivity>& activities, const Step& step, std::int64_t begin,
              std::int64_t end, Totals& totals) {
  constexpr std::size_t kMostDurations = 20'000;
  totals.spans.push_back(static_cast<double>(end - begin));
  for (std::size_t i = step.first; i < step.last; ++i) {
    const GpuActivity& activity = activities[i];
    Sums& sums = totals.by_name[activity.name];
    sums.launches += 1.0;
    sums.busy += static_cast<double>(activity.duration_ns);
    if (sums.durations.size() < kMostDurations) {
      sums.durations.push_back(static_cast<float>(activity.duration_ns));
    }
    totals.busy_sum += static_cast<double>(activity.duration_ns);
    totals.launches += 1.0;
    totals.graph_launches += activity.in_graph ? 1.0 : 0.0;
  }
  sweep(activities, step, begin, end, totals);
}

template <class Value>
double quantile(std::vector<Value> values, double q) {
  if (values.empty()) return 0.0;
  const auto k = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(k)]);
}

/// Kernels launched apart and run as nodes of a graph both carry a launch id; a graph is where
/// many share one. Only for traces of profilers before CUDA 12, which do not mark graph nodes.
void mark_graph_nodes(std::vector<GpuActivity>& activities) {
  constexpr std::uint32_t kFewestNodes = 4;
  const bool marked = std::any_of(activities.begin(), activities.end(),
                                  [](const GpuActivity& activity) { return activity.in_graph; });
  if (marked) return;
  std::unordered_map<std::uint32_t, std::uint32_t> num_of_launch;
  for (const GpuActivity& activity : activities) ++num_of_launch[activity.launch];
  for (GpuActivity& activity : activities) {
    activity.in_graph = activity.in_graph ||
                        (activity.launch != 0 && num_of_launch[activity.launch] >= kFewestNodes);
  }
}

}  // namespace

std::optional<StepProfile> profile_device(const KernelTrace& trace, std::uint16_t device,
                                          const TraceRules& rules,
                                          const std::optional<std::regex>& anchor) {
  std::vector<GpuActivity> activities = trace.of_device(device);
  if (activities.empty()) return std::nullopt;
  mark_graph_nodes(activities);
  StepProfile profile;
  profile.device =
      (trace.rank ? "rank " + std::to_string(*trace.rank) + ", " : "") + trace.devices()[device];
  profile.search = find_steps(activities, trace.names(), anchor);
  Totals totals;
  for (const Step& step : profile.search.steps) {
    if (!step.typical) {
      ++profile.num_other_steps;
      continue;
    }
    // From mark to mark: the next step's first kernel ends this one, as the loop does.
    add_step(activities, step, activities[step.first].start_ns, activities[step.last].start_ns,
             totals);
  }
  if (totals.spans.empty()) {
    std::int64_t end = activities.front().start_ns;
    for (const GpuActivity& a : activities) end = std::max(end, a.start_ns + a.duration_ns);
    add_step(activities, {0, activities.size(), true}, activities.front().start_ns, end, totals);
    profile.num_other_steps = 0;
  }
  profile.num_steps = totals.spans.size();
  const auto num_steps = static_cast<double>(profile.num_steps);
  const double per_step = kSecondsPerNanosecond / num_steps;
  double span = 0.0;
  for (const double x : totals.spans) span += x;
  profile.step_seconds = span * per_step;
  profile.step_p05_seconds = quantile(totals.spans, 0.05) * kSecondsPerNanosecond;
  profile.step_p95_seconds = quantile(totals.spans, 0.95) * kSecondsPerNanosecond;
  profile.busy_sum_seconds = totals.busy_sum * per_step;
  profile.busy_union_seconds = totals.busy_union * per_step;
  profile.idle_seconds = totals.idle * per_step;
  profile.idle_in_graph_seconds = totals.idle_in_graph * per_step;
  profile.graph_fraction = totals.launches > 0.0 ? totals.graph_launches / totals.launches : 0.0;
  double mapped = 0.0;
  for (auto& [name, sums] : totals.by_name) {
    ProfileLine line;
    line.kernel = trace.names()[name];
    const auto rule = match(rules, line.kernel);
    line.op = rule ? rules.rules[*rule].op : "unknown";
    if (rule) line.family = rules.rules[*rule].family;
    line.launches = sums.launches / num_steps;
    line.busy_seconds = sums.busy * per_step;
    line.exposed_seconds = sums.exposed * per_step;
    line.launch_median_seconds = quantile(std::move(sums.durations), 0.5) * kSecondsPerNanosecond;
    if (rule) mapped += line.busy_seconds;
    profile.lines.push_back(std::move(line));
  }
  profile.mapped_fraction =
      profile.busy_sum_seconds > 0.0 ? mapped / profile.busy_sum_seconds : 0.0;
  std::sort(profile.lines.begin(), profile.lines.end(), [](const auto& a, const auto& b) {
    return a.exposed_seconds != b.exposed_seconds ? a.exposed_seconds > b.exposed_seconds
                                                  : a.kernel < b.kernel;
  });
  return profile;
}

StepProfile profile_totals(const std::vector<KernelTotal>& kernels, const TraceRules& rules,
                           double num_steps, const std::string& device) {
  StepProfile profile;
  profile.device = device;
  profile.timed = false;
  profile.num_steps = static_cast<std::size_t>(num_steps);
  double mapped = 0.0;
  for (const KernelTotal& kernel : kernels) {
    const auto rule = match(rules, kernel.name);
    ProfileLine line{
        .op = rule ? rules.rules[*rule].op : "unknown",
        .family = rule ? rules.rules[*rule].family : OpFamily::kElementwise,
        .kernel = kernel.name,
        .launches = kernel.count / num_steps,
        .busy_seconds = kernel.seconds / num_steps,
        .exposed_seconds = kernel.seconds / num_steps,
        .launch_median_seconds = kernel.count > 0.0 ? kernel.seconds / kernel.count : 0.0};
    profile.busy_sum_seconds += line.busy_seconds;
    if (rule) mapped += line.busy_seconds;
    profile.lines.push_back(std::move(line));
  }
  profile.busy_union_seconds = profile.busy_sum_seconds;
  profile.mapped_fraction =
      profile.busy_sum_seconds > 0.0 ? mapped / profile.busy_sum_seconds : 0.0;
  std::stable_sort(profile.lines.begin(), profile.lines.end(),
                   [](const auto& a, const auto& b) { return a.busy_seconds > b.busy_seconds; });
  return profile;
}

std::vector<OpTotal> totals_by_op(const std::vector<ProfileLine>& lines) {
  std::map<std::string, OpTotal> by_op;
  for (const ProfileLine& line : lines) {
    OpTotal& total = by_op[line.op];
    total.op = line.op;
    total.family = line.family;
    total.launches += line.launches;
    total.busy_seconds += line.busy_seconds;
    total.exposed_seconds += line.exposed_seconds;
  }
  std::vector<OpTotal> result;
  for (auto& [op, total] : by_op) result.push_back(std::move(total));
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.exposed_seconds > b.exposed_seconds;
  });
  return result;
}

}  // namespace fulcrum::calibrate
