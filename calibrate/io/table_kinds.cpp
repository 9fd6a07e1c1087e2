#include "calibrate/io/table_kinds.h"

#include <charconv>

namespace fulcrum::calibrate::io {
namespace {

std::optional<Shape> build_moe(std::span<const double> v, std::string_view label, std::string_view,
                               std::string_view, std::string& why) {
  MoeRow row{.num_tokens = v[0],
             .hidden_size = v[1],
             .inter_size = v[2],
             .top_k = v[3],
             .num_experts = v[4],
             .moe_tp_size = v[5],
             .moe_ep_size = v[6]};
  constexpr std::string_view kPowerLaw = "power_law_";
  if (label == "balanced") {
    row.routing = Routing::kRoundRobin;
  } else if (label == "uniform") {
    row.routing = Routing::kUniform;
  } else if (label.starts_with(kPowerLaw)) {
    const auto alpha = to_number(label.substr(kPowerLaw.size()));
    if (!alpha) {
      why = "distribution '" + std::string(label) + "'";
      return std::nullopt;
    }
    row.routing = Routing::kPowerLaw;
    row.power_law_alpha = *alpha;
  } else {
    why = "distribution '" + std::string(label) + "'";
    return std::nullopt;
  }
  return row;
}

std::optional<Shape> build_collective(std::span<const double> v, std::string_view,
                                      std::string_view op_name, std::string_view dtype,
                                      std::string& why) {
  CollectiveRow row{.num_gpus = v[0], .message_size = v[1]};
  if (op_name == "all_reduce") {
    row.kind = CollectiveKind::kAllReduce;
  } else if (op_name == "all_gather") {
    row.kind = CollectiveKind::kAllGather;
  } else if (op_name == "reduce_scatter") {
    row.kind = CollectiveKind::kReduceScatter;
  } else if (op_name == "alltoall" || op_name == "all_to_all") {
    row.kind = CollectiveKind::kAllToAll;
  } else {
    why = "op_name '" + std::string(op_name) + "'";
    return std::nullopt;
  }
  if (dtype == "half" || dtype == "float16" || dtype == "bfloat16") {
    row.element_bytes = 2.0;
  } else if (dtype == "int8" || dtype == "fp8") {
    row.element_bytes = 1.0;
  } else if (dtype == "float" || dtype == "float32") {
    row.element_bytes = 4.0;
  } else {
    why = "dtype '" + std::string(dtype) + "'";
    return std::nullopt;
  }
  return row;
}

std::optional<Shape> build_gemm(std::span<const double> v, std::string_view, std::string_view,
                                std::string_view, std::string&) {
  return GemmRow{v[0], v[1], v[2]};
}

std::optional<Shape> build_attention(std::span<const double> v, std::string_view label,
                                     std::string_view, std::string_view, std::string&) {
  return AttentionRow{std::string(label), v[0], v[1], v[2], v[3], v[4], v[5]};
}

std::optional<Shape> build_mhc(std::span<const double> v, std::string_view, std::string_view,
                               std::string_view, std::string&) {
  return MhcRow{v[0], v[1], v[2], v[3], v[4]};
}

}  // namespace

std::optional<double> to_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const std::vector<TableKind>& table_kinds() {
  static const std::vector<TableKind> kinds = {
      {"gemm_perf", "gemm_dtype", {"m", "n", "k"}, build_gemm, ""},
      {"moe_perf",
       "moe_dtype",
       {"num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size",
        "moe_ep_size"},
       build_moe,
       "distribution"},
      {kAttentionModuleTable,
       "gemm_type",
       {"num_heads", "batch_size", "isl", "tp_size", "step", "compress_ratio"},
       build_attention,
       "model"},
      {"mhc_module_perf",
       "",
       {"num_tokens", "num_sites", "hc_mult", "hidden_size", "sinkhorn_iters"},
       build_mhc,
       ""},
      {"nccl_perf", "nccl_dtype", {"num_gpus", "message_size"}, build_collective, ""},
      {"custom_allreduce_perf",
       "allreduce_dtype",
       {"num_gpus", "message_size"},
       build_collective,
       ""},
  };
  return kinds;
}

}  // namespace fulcrum::calibrate::io
