// Measured kernel times as the fit sees them: rows grouped into series, one series per
// (device, engine, kernel, format). Shapes are typed per table; times are seconds per launch.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/laws/launches.h"

namespace fulcrum::calibrate {

/// gemm_perf: C[m,n] = A[m,k] B[n,k]^T on one device.
struct GemmRow {
  double m = 0.0;
  double n = 0.0;
  double k = 0.0;
};

/// moe_perf: one rank's routed experts; `inter_size` is the model's, before division by TP.
struct MoeRow {
  double num_tokens = 0.0;
  double hidden_size = 0.0;
  double inter_size = 0.0;
  double top_k = 0.0;
  double num_experts = 0.0;
  double moe_tp_size = 1.0;
  double moe_ep_size = 1.0;
  Routing routing = Routing::kRoundRobin;
  double power_law_alpha = 0.0;  ///< Routing::kPowerLaw only
};

/// dsv4_*_module_perf: one attention layer (or its indexer) in decode on one rank.
struct AttentionRow {
  std::string model;       ///< Hugging Face name as the table spells it
  double num_heads = 0.0;  ///< heads of this rank
  double batch_size = 0.0;
  double query_tokens = 1.0;  ///< column `isl`: query tokens per request
  double tp_size = 1.0;
  double context_tokens = 0.0;  ///< column `step`
  double compress_ratio = 0.0;
};

/// mhc_module_perf: hyper-connection mixing; pre or post is the series' op_name.
struct MhcRow {
  double num_tokens = 0.0;
  double num_sites = 0.0;
  double streams = 0.0;  ///< column `hc_mult`
  double hidden_size = 0.0;
  double sinkhorn_iterations = 0.0;
};

/// nccl_perf and custom_allreduce_perf; the operation is the series' op_name.
struct CollectiveRow {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double num_gpus = 0.0;
  double message_size = 0.0;   ///< as the table counts it (nccl: see import; custom: bytes)
  double element_bytes = 0.0;  ///< size of the table's dtype
};

using Shape = std::variant<GemmRow, MoeRow, AttentionRow, MhcRow, CollectiveRow>;

/// One measured launch.
struct Record {
  Shape shape;
  double latency_seconds = 0.0;
  std::uint32_t line = 0;  ///< line in the imported file, for messages
};

/// What one set of fitted parameters belongs to.
struct SeriesKey {
  std::string device;          ///< e.g. "rtx_pro_6000_server"
  std::string engine;          ///< e.g. "sglang"; "nccl" for the collectives' own table
  std::string engine_version;  ///< e.g. "0.5.14"
  std::string table;           ///< e.g. "gemm_perf"
  std::string op_name;         ///< e.g. "gemm", "pre", "all_reduce"
  std::string kernel_source;   ///< e.g. "sglang_torch_linear"
  std::string dtype;           ///< gemm_dtype, moe_dtype, gemm_type, nccl_dtype, ... ; "" if none

  auto operator<=>(const SeriesKey&) const = default;
};

/// "device/engine/version/table/op/kernel_source/dtype"
std::string to_string(const SeriesKey& key);

/// Rows of one kernel, in file order.
struct Series {
  SeriesKey key;
  std::vector<Record> records;
};

}  // namespace fulcrum::calibrate
