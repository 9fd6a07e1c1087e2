// Rows that cannot be right: what physics, repetition and the neighbours say.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "calibrate/measurement_table.h"
#include "calibrate/size_axis.h"
#include "calibrate/slow_tactics.h"
#include "model/errors.h"

namespace fulcrum::calibrate {
namespace {

// Bounds of the screen. They are wide: what they catch is wrong, not merely noisy (the loss
// function deals with noise). Of the 271 657 public rows of two GPUs (aiconfigurator 095f58a51c4c,
// decode-sized) they set aside 68: 20 exact repeats and 48 single points 2 to 20 times off their
// neighbours; check_tactics alone sets aside more.

/// Kernel nodes of a CUDA graph follow each other no faster; the shortest public row is 1.76 us.
constexpr double kLaunchFloorSeconds = 1.0e-6;
/// Two times for one shape further apart than this cannot both serve a 3 % model. Repeats in the
/// public tables agree to 0.02 %.
constexpr double kDuplicateRatio = 1.05;
/// A point is off when it is this factor outside the interval of its two neighbours in size.
constexpr double kOutlierRatio = 2.0;
/// What a host launch adds to a graph launch: 14 to 23 us between the eager and the graph rows of
/// custom_allreduce_perf, with room on both sides.
constexpr double kHostLaunchLow = 8.0e-6;
constexpr double kHostLaunchHigh = 40.0e-6;
/// A misread unit is a factor of a thousand; half way to it on a log scale from the largest honest
/// ratio of neighbours (10).
constexpr double kUnitRatio = 100.0;
/// Median time over the fastest possible time beyond which a whole table is in the wrong unit:
/// honest series have medians of 1 to 60 (torch mHC at small batch), wrong ones of 1000 and more.
constexpr double kTableRatio = 300.0;

std::string text(const char* format, double a, double b) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, format, a, b);
  return buffer;
}

struct Verdict {
  bool bad = false;
  QuarantineReason reason = QuarantineReason::kMalformed;
  std::string detail;
};

void check_floors(const Series& series, const LawDevice& device, std::vector<Verdict>& verdicts) {
  for (std::size_t i = 0; i < series.records.size(); ++i) {
    const Record& record = series.records[i];
    if (record.latency_seconds < kLaunchFloorSeconds) {
      verdicts[i] = {true, QuarantineReason::kBelowLaunchFloor,
                     text("%.4g us, launches take at least %.2g us", record.latency_seconds * 1e6,
                          kLaunchFloorSeconds * 1e6)};
      continue;
    }
    const double least = least_seconds(series.key, record, device);
    if (record.latency_seconds < least) {
      verdicts[i] = {true, QuarantineReason::kAbovePhysics,
                     text("%.4g us, the device's peak rate needs %.4g us",
                          record.latency_seconds * 1e6, least * 1e6)};
    }
  }
}

/// Row indices sorted by (all other dimensions, size).
std::vector<std::size_t> by_size(const Series& series, std::vector<SizeAxis>& axes) {
  axes.clear();
  for (const Record& record : series.records) axes.push_back(size_axis(record.shape));
  std::vector<std::size_t> order(series.records.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(axes[a].rest, axes[a].size) < std::tie(axes[b].rest, axes[b].size);
  });
  return order;
}

void check_duplicates(const Series& series, const std::vector<SizeAxis>& axes,
                      const std::vector<std::size_t>& order, std::vector<Verdict>& verdicts) {
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && axes[order[end]] == axes[order[begin]]) ++end;
    double low = std::numeric_limits<double>::infinity();
    double high = 0.0;
    for (std::size_t k = begin; k < end; ++k) {
      low = std::min(low, series.records[order[k]].latency_seconds);
      high = std::max(high, series.records[order[k]].latency_seconds);
    }
    const bool disagree = high > kDuplicateRatio * low;
    for (std::size_t k = begin; end - begin > 1 && k < end; ++k) {
      Verdict& verdict = verdicts[order[k]];
      if (verdict.bad || (!disagree && k == begin)) continue;
      verdict = {true,
                 disagree ? QuarantineReason::kDisagreeingDuplicate : QuarantineReason::kDuplicate,
                 text("the shape stands from %.4g to %.4g us in the table", low * 1e6, high * 1e6)};
    }
    begin = end;
  }
}

Verdict compare_with_neighbours(double before, double here, double after) {
  const double low = std::min(before, after);
  const double high = std::max(before, after);
  const bool spike = here > kOutlierRatio * high;
  if (!spike && here * kOutlierRatio >= low) return {};
  const double ratio = spike ? here / high : low / here;
  const double excess = here - high;
  Verdict verdict{true, QuarantineReason::kNonMonotone,
                  text("%.4g us, %.3g times outside its neighbours in size", here * 1e6, ratio)};
  if (ratio > kUnitRatio) {
    verdict.reason = QuarantineReason::kWrongUnits;
  } else if (spike && high < kHostLaunchHigh && excess > kHostLaunchLow &&
             excess < kHostLaunchHigh) {
    verdict.reason = QuarantineReason::kEagerLaunch;
    // A badly chosen kernel can cost as much; either way the row is not the kernel's time.
    verdict.detail += ", by what a host launch costs";
  }
  return verdict;
}

void check_neighbours(const Series& series, const std::vector<SizeAxis>& axes,
                      std::vector<std::size_t> order, std::vector<Verdict>& verdicts) {
  // Rows already set aside are no witnesses.
  std::erase_if(order, [&](std::size_t i) { return verdicts[i].bad; });
  const auto seconds = [&](std::size_t k) { return series.records[order[k]].latency_seconds; };
  for (std::size_t k = 1; k + 1 < order.size(); ++k) {
    const auto& rest = axes[order[k]].rest;
    if (axes[order[k - 1]].rest != rest || axes[order[k + 1]].rest != rest) continue;
    Verdict verdict = compare_with_neighbours(seconds(k - 1), seconds(k), seconds(k + 1));
    if (verdict.bad) verdicts[order[k]] = std::move(verdict);
  }
}

/// Rows a hundred times slower than a smaller or larger launch of their shape can explain: a part
/// of the table in another unit. Time grows at most with the size.
void check_mixed_units(const Series& series, const std::vector<SizeAxis>& axes,
                       const std::vector<std::size_t>& order, std::vector<Verdict>& verdicts) {
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && axes[order[end]].rest == axes[order[begin]].rest) ++end;
    // Seconds a launch of size 1 takes at most by the witnesses so far, from both sides.
    double larger = std::numeric_limits<double>::infinity();
    std::vector<double> allowed(end - begin);
    for (std::size_t k = end; k-- > begin;) {
      if (!verdicts[order[k]].bad) {
        larger = std::min(larger, series.records[order[k]].latency_seconds);
      }
      allowed[k - begin] = larger;
    }
    double per_size = std::numeric_limits<double>::infinity();
    for (std::size_t k = begin; k < end; ++k) {
      const double size = std::max(1.0, axes[order[k]].size);
      const double seconds = series.records[order[k]].latency_seconds;
      const double most = kUnitRatio * std::min(allowed[k - begin], per_size * size);
      Verdict& verdict = verdicts[order[k]];
      if (verdict.bad) continue;
      if (seconds > most) {
        verdict = {true, QuarantineReason::kWrongUnits,
                   text("%.4g us, %.3g times what its neighbours in size allow", seconds * 1e6,
                        seconds / most * kUnitRatio)};
        continue;
      }
      per_size = std::min(per_size, seconds / size);
    }
    begin = end;
  }
}

/// Of H200's TensorRT-LLM BF16 and FP8 experts one row in nine took 2 to 12 times as long as rows
/// with more tokens, experts and width (whole shapes, or from some token count up).
void check_tactics(const Series& series, std::vector<Verdict>& verdicts) {
  if (!is_autotuned(series.key)) return;
  const std::vector<double> slowdown = slowdown_against_more_work(series, kOutlierRatio);
  for (std::size_t i = 0; i < slowdown.size(); ++i) {
    if (verdicts[i].bad || slowdown[i] <= kOutlierRatio) continue;
    verdicts[i] = {true, QuarantineReason::kSlowTactic,
                   text("%.4g us, %.3g times as long as a launch with more work",
                        series.records[i].latency_seconds * 1e6, slowdown[i])};
  }
}

InputError whole_table(const MeasurementTable& table, std::string message, std::string allowed) {
  return InputError(InputProblem{table.file, "latency_ms", std::move(message), std::move(allowed)});
}

/// Throws if the median row takes hundreds of times what the hardware needs.
void check_unit(const MeasurementTable& table, const LawDevice& device) {
  std::vector<double> ratios;
  for (const Series& series : table.series) {
    for (const Record& record : series.records) {
      // Fallback attention kernels really are a thousand times slower than the hardware.
      if (std::holds_alternative<AttentionRow>(record.shape)) continue;
      ratios.push_back(record.latency_seconds /
                       (kLaunchFloorSeconds + warm_roofline_seconds(series.key, record, device)));
    }
  }
  if (ratios.empty()) return;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  if (*middle > kTableRatio) {
    throw whole_table(table,
                      text("the median row takes %.0f times what this device needs; the unit looks "
                           "wrong (bound: %.0f)",
                           *middle, kTableRatio),
                      "milliseconds per launch");
  }
}

}  // namespace

const char* to_string(QuarantineReason reason) {
  constexpr std::array<const char*, kNumQuarantineReasons> kNames = {
      "malformed",     "not_positive", "below_launch_floor",
      "above_physics", "duplicate",    "disagreeing_duplicate",
      "eager_launch",  "wrong_units",  "non_monotone",
      "slow_tactic"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::array<std::uint32_t, kNumQuarantineReasons> count_reasons(const MeasurementTable& table) {
  std::array<std::uint32_t, kNumQuarantineReasons> counts{};
  for (const QuarantinedRow& row : table.quarantined) {
    ++counts[static_cast<std::size_t>(row.reason)];
  }
  return counts;
}

void screen(MeasurementTable& table, const LawDevice& device) {
  check_unit(table, device);
  std::size_t kept = 0;
  std::size_t too_fast = 0;
  for (Series& series : table.series) {
    std::vector<Verdict> verdicts(series.records.size());
    std::vector<SizeAxis> axes;
    check_floors(series, device, verdicts);
    const std::vector<std::size_t> order = by_size(series, axes);
    check_duplicates(series, axes, order, verdicts);
    check_mixed_units(series, axes, order, verdicts);
    check_neighbours(series, axes, order, verdicts);
    check_tactics(series, verdicts);
    std::vector<Record> good;
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (!verdicts[i].bad) {
        good.push_back(std::move(series.records[i]));
        continue;
      }
      too_fast += verdicts[i].reason == QuarantineReason::kBelowLaunchFloor ||
                  verdicts[i].reason == QuarantineReason::kAbovePhysics;
      table.quarantined.push_back(
          {series.records[i].line, verdicts[i].reason, std::move(verdicts[i].detail)});
    }
    series.records = std::move(good);
    kept += series.records.size();
  }
  std::erase_if(table.series, [](const Series& s) { return s.records.empty(); });
  std::stable_sort(table.quarantined.begin(), table.quarantined.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  if (too_fast > kept) {
    throw whole_table(table,
                      std::to_string(too_fast) + " of " + std::to_string(table.num_rows) +
                          " rows are faster than the device can be; the unit looks wrong",
                      "milliseconds per launch");
  }
  if (kept == 0) {
    throw whole_table(table,
                      "no usable row: all " + std::to_string(table.num_rows) +
                          " are set aside (first: line " +
                          std::to_string(table.quarantined.front().line) + ", " +
                          to_string(table.quarantined.front().reason) + ", " +
                          table.quarantined.front().detail + ")",
                      "at least one positive time");
  }
}

}  // namespace fulcrum::calibrate
