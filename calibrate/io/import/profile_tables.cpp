#include "calibrate/io/import/profile_tables.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

namespace fulcrum::calibrate::io {
namespace {

constexpr double kMillisecondsPerSecond = 1e3;
constexpr const char* kVersion = "profile";  // the engine's own version is not in a trace

/// Letters, digits and underscores of a kernel's name up to its template arguments.
std::string kernel_label(const std::string& kernel) {
  std::string label;
  for (const char c : kernel.substr(0, kernel.find_first_of("<("))) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    label += plain ? c : '_';
  }
  constexpr std::size_t kLongest = 64;
  return label.substr(0, kLongest);
}

struct MeasuredOp {
  double busy_seconds = 0.0;  ///< of all kernels of the op
  double launches = 0.0;      ///< of its longest kernel
  double longest_seconds = 0.0;
  double launch_median_seconds = 0.0;  ///< of its longest kernel
  std::string kernel;                  ///< its longest
};

std::optional<MeasuredOp> measured(const StepProfile& profile, const std::string& op) {
  std::optional<MeasuredOp> result;
  for (const ProfileLine& line : profile.lines) {
    if (line.op != op) continue;
    if (!result) result = MeasuredOp{};
    result->busy_seconds += line.busy_seconds;
    if (line.busy_seconds > result->longest_seconds || result->kernel.empty()) {
      result->longest_seconds = line.busy_seconds;
      result->launches = line.launches;
      result->launch_median_seconds = line.launch_median_seconds;
      result->kernel = line.kernel;
    }
  }
  return result;
}

const char* moe_dtype(const MoeLaunch& launch) {
  // MXFP4 stores 4 bits and an 8-bit scale per 32, NVFP4 one per 16; loaders may widen the scales.
  if (launch.weight_bits >= 16.0) return "bfloat16";
  if (launch.weight_bits >= 8.0) return "fp8_block";
  return launch.weight_bits == 4.5 ? "nvfp4" : "w4a16_mxfp4";
}

class Tables {
 public:
  explicit Tables(const ProfiledServer& server) : server_(server) {}

  ImportedTable& of(const std::string& name, const std::string& family,
                    std::vector<std::string> columns) {
    ImportedTable& table = tables_[name];
    if (table.columns.empty()) {
      table.device = server_.device;
      std::replace(table.device.begin(), table.device.end(), '-', '_');
      table.engine = server_.engine;
      table.engine_version = kVersion;
      table.family = family;
      table.table = name;
      table.columns = std::move(columns);
    }
    return table;
  }
  std::vector<ImportedTable> take() {
    std::vector<ImportedTable> result;
    for (auto& [name, table] : tables_) result.push_back(std::move(table));
    return result;
  }

 private:
  const ProfiledServer& server_;
  std::map<std::string, ImportedTable> tables_;
};

std::string routing_label(const MoeLaunch& moe) {
  if (moe.routing == Routing::kRoundRobin) return "balanced";
  if (moe.routing == Routing::kPowerLaw) return "power_law_" + table_number(moe.power_law_alpha);
  return "uniform";
}

void add_moe(const MoeLaunch& moe, const MeasuredOp& op, double executions, Tables& tables) {
  const double ep = moe.num_experts / moe.local_experts;
  tables
      .of("moe_perf", "moe",
          {"op_name", "kernel_source", "moe_dtype", "num_tokens", "hidden_size", "inter_size",
           "topk", "num_experts", "moe_tp_size", "moe_ep_size", "distribution", "latency_ms"})
      .rows.push_back({"moe", kernel_label(op.kernel), moe_dtype(moe), table_number(moe.tokens),
                       table_number(moe.hidden), table_number(moe.inter), table_number(moe.top_k),
                       table_number(moe.num_experts), "1", table_number(ep), routing_label(moe),
                       table_number(op.busy_seconds / executions * kMillisecondsPerSecond)});
}

void add_mhc(const MhcLaunch& mhc, const MeasuredOp& op, double executions, bool pre,
             Tables& tables) {
  tables
      .of("mhc_module_perf", "mhc",
          {"op_name", "kernel_source", "num_tokens", "num_sites", "hc_mult", "hidden_size",
           "sinkhorn_iters", "latency_ms"})
      .rows.push_back({pre ? "pre" : "post", kernel_label(op.kernel), table_number(mhc.tokens), "1",
                       table_number(mhc.streams), table_number(mhc.hidden),
                       table_number(mhc.sinkhorn_iterations),
                       table_number(op.busy_seconds / executions * kMillisecondsPerSecond)});
}

void add_head(const GemmLaunch& gemm, const MeasuredOp& op, double executions, Tables& tables) {
  tables
      .of("gemm_perf", "gemm",
          {"op_name", "kernel_source", "gemm_dtype", "m", "n", "k", "latency_ms"})
      .rows.push_back({"gemm", kernel_label(op.kernel), "bfloat16", table_number(gemm.m),
                       table_number(gemm.n), table_number(gemm.k),
                       table_number(op.busy_seconds / executions * kMillisecondsPerSecond)});
}

void add_all_reduce(const CollectiveLaunch& launch, const MeasuredOp& op, Tables& tables) {
  constexpr double kElementBytes = 2.0;  // activations are reduced in BF16
  const bool nccl = op.kernel.find("nccl") != std::string::npos;
  tables
      .of(nccl ? "nccl_perf" : "custom_allreduce_perf", "comm",
          {"op_name", "kernel_source", nccl ? "nccl_dtype" : "allreduce_dtype", "num_gpus",
           "message_size", "latency_ms"})
      .rows.push_back({"all_reduce", nccl ? "NCCL" : kernel_label(op.kernel), "bfloat16",
                       table_number(launch.ranks), table_number(launch.bytes / kElementBytes),
                       table_number(op.launch_median_seconds * kMillisecondsPerSecond)});
}

}  // namespace

std::vector<ImportedTable> profile_tables(const std::vector<StepProfile>& ranks,
                                          const StepGraph& graph, const StepState& state,
                                          const ProfiledServer& server) {
  Tables tables(server);
  const bool drafts = graph.settings.num_draft_tokens > 0;
  std::map<std::string, bool> seen;
  std::vector<std::string> mismatches;
  for (const StepOp& op : graph.ops) {
    const std::string name(name_of(op.id));
    if (op.draft || op.count <= 0.0 || ranks.empty() || seen[name]) continue;
    const Launch launch = launch_at(graph, op, state);
    if (op.id == OpId::kAllReduce) {
      std::optional<MeasuredOp> fastest;
      for (const StepProfile& rank : ranks) {
        const auto one = measured(rank, name);
        if (one && (!fastest || one->launch_median_seconds < fastest->launch_median_seconds)) {
          fastest = one;
        }
      }
      if (fastest) add_all_reduce(std::get<CollectiveLaunch>(launch), *fastest, tables);
      seen[name] = true;
      continue;
    }
    // With drafts the same kernels run for another number of tokens too.
    if (drafts) continue;
    const auto one = measured(ranks.front(), name);
    if (!one) continue;
    seen[name] = true;
    const bool tabled = std::holds_alternative<MoeLaunch>(launch) ||
                        std::holds_alternative<MhcLaunch>(launch) || op.id == OpId::kLmHead;
    if (!tabled) continue;
    const double per_execution = one->launches / op.count;
    constexpr double kWhole = 0.02;
    if (per_execution < 1.0 - kWhole ||
        std::abs(per_execution - std::round(per_execution)) > kWhole) {
      mismatches.push_back(name + ": " + table_number(one->launches) +
                           " launches a step, the scenario has " + table_number(op.count) +
                           " executions; no row");
      continue;
    }
    if (const auto* moe = std::get_if<MoeLaunch>(&launch)) {
      add_moe(*moe, *one, op.count, tables);
    } else if (const auto* mhc = std::get_if<MhcLaunch>(&launch)) {
      add_mhc(*mhc, *one, op.count, op.id == OpId::kMhcPre, tables);
    } else if (op.id == OpId::kLmHead) {
      add_head(std::get<GemmLaunch>(launch), *one, op.count, tables);
    }
  }
  std::vector<ImportedTable> result = tables.take();
  if (!result.empty()) result.front().notes = std::move(mismatches);
  if (drafts && !result.empty()) {
    result.front().notes.emplace_back(
        "the server drafts: its kernels run for two numbers of tokens, so only collectives have "
        "rows");
  }
  return result;
}

}  // namespace fulcrum::calibrate::io
