#include "calibrate/slow_tactics.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace fulcrum::calibrate {
namespace {

struct Work {
  Routing routing = Routing::kRoundRobin;
  double alpha = 0.0;
  std::array<double, 5> amounts{};
  double seconds = 0.0;
};

Work work_of(const Record& record) {
  const auto& row = std::get<MoeRow>(record.shape);
  return {.routing = row.routing,
          .alpha = row.power_law_alpha,
          .amounts = {row.num_tokens, row.num_tokens * row.top_k / row.moe_ep_size,
                      row.num_experts / row.moe_ep_size, row.hidden_size,
                      row.inter_size / row.moe_tp_size},
          .seconds = record.latency_seconds};
}

bool has_at_least(const Work& a, const Work& b) {
  for (std::size_t i = 0; i < a.amounts.size(); ++i) {
    if (a.amounts[i] < b.amounts[i]) return false;
  }
  return a.routing == b.routing && a.alpha == b.alpha;
}

}  // namespace

bool is_autotuned(const SeriesKey& key) {
  // TensorRT-LLM's fused-MoE operators and flashinfer's copy of them. Not its Triton kernel, which
  // computes remote pairs: there a rank with fewer experts does not have less to do.
  if (key.table != "moe_perf") return false;
  return key.kernel_source == "sglang_flashinfer_cutlass_moe" ||
         key.kernel_source == "moe_torch_flow_cutlass" ||
         key.kernel_source == "moe_torch_flow_nongated";
}

std::vector<double> slowdown_against_more_work(const Series& series, double least_ratio) {
  std::vector<Work> works;
  for (const Record& record : series.records) works.push_back(work_of(record));
  std::vector<std::size_t> order(works.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return works[a].seconds < works[b].seconds;
  });
  std::vector<double> slowdown(works.size(), 1.0);
  // From the fastest up: the first record with at least as much work is the fastest of them.
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Work& here = works[order[i]];
    for (std::size_t j = 0; j < i; ++j) {
      if (works[order[j]].seconds * least_ratio > here.seconds) break;
      if (!has_at_least(works[order[j]], here)) continue;
      slowdown[order[i]] = here.seconds / works[order[j]].seconds;
      break;
    }
  }
  return slowdown;
}

}  // namespace fulcrum::calibrate
