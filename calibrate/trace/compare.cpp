#include "calibrate/trace/compare.h"

#include <algorithm>
#include <map>

namespace fulcrum::calibrate {
namespace {

std::string slot_named(const std::string& op) {
  for (int i = 0; i < kNumOpIds; ++i) {
    const auto id = static_cast<OpId>(i);
    if (name_of(id) == op) return std::string(slot_of(id));
  }
  return op;
}

}  // namespace

std::vector<OpComparison> compare(const StepProfile& profile,
                                  const std::vector<BreakdownLine>& breakdown) {
  std::map<std::string, OpComparison> by_op;
  for (const OpTotal& total : totals_by_op(profile.lines)) {
    by_op[total.op] = {total.op, total.exposed_seconds, std::nullopt};
  }
  if (profile.timed) by_op["gap"] = {"gap", profile.idle_seconds, std::nullopt};
  for (const BreakdownLine& line : breakdown) {
    constexpr std::string_view kDraft = "draft.";
    std::string op = line.op.starts_with(kDraft) ? line.op.substr(kDraft.size()) : line.op;
    if (!by_op.contains(op) && by_op.contains(slot_named(op))) op = slot_named(op);
    OpComparison& comparison = by_op[op];
    comparison.op = op;
    comparison.predicted_seconds = comparison.predicted_seconds.value_or(0.0) + line.seconds;
  }
  std::vector<OpComparison> result;
  for (auto& [op, comparison] : by_op) result.push_back(std::move(comparison));
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    const double x = std::max(a.measured_seconds.value_or(0.0), a.predicted_seconds.value_or(0.0));
    const double y = std::max(b.measured_seconds.value_or(0.0), b.predicted_seconds.value_or(0.0));
    return x > y;
  });
  return result;
}

}  // namespace fulcrum::calibrate
