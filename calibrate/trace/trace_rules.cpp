#include "calibrate/trace/trace_rules.h"

#include <algorithm>
#include <array>

namespace fulcrum::calibrate {
namespace {

constexpr std::size_t kMatchedCharacters = 2048;
constexpr std::array<std::string_view, 4> kOutsideOps = {"draft", "memcpy", "memset",
                                                         "bookkeeping"};

}  // namespace

bool is_outside_op(std::string_view op) {
  return std::find(kOutsideOps.begin(), kOutsideOps.end(), op) != kOutsideOps.end();
}

bool is_graph_op(std::string_view op) {
  for (int i = 0; i < kNumOpIds; ++i) {
    const auto id = static_cast<OpId>(i);
    if (name_of(id) == op || slot_of(id) == op) return true;
  }
  return false;
}

std::optional<std::size_t> match(const TraceRules& rules, std::string_view kernel_name) {
  const std::string_view head = kernel_name.substr(0, kMatchedCharacters);
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    if (std::regex_search(head.begin(), head.end(), rules.rules[i].regex)) return i;
  }
  return std::nullopt;
}

RuleCoverage coverage(const TraceRules& rules, const std::vector<KernelTotal>& kernels) {
  RuleCoverage result;
  for (const KernelTotal& kernel : kernels) {
    result.total_seconds += kernel.seconds;
    if (match(rules, kernel.name)) {
      result.mapped_seconds += kernel.seconds;
    } else {
      result.unknown.push_back(kernel);
    }
  }
  std::stable_sort(result.unknown.begin(), result.unknown.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return result;
}

}  // namespace fulcrum::calibrate
