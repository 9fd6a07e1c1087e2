#include "calibrate/families/moe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "model/laws/log_correction.h"
#include "model/laws/moe_kernels.h"

namespace fulcrum::calibrate {
namespace {

struct Format {
  std::string_view dtype;
  NumberFormat compute;
  double weight_bits;  ///< scales included
  double activation_bits;
};

/// Scales: FP32 per 128x128 (fp8_block), E4M3 per 16 (nvfp4), E8M0 per 32 (mxfp4), BF16 per 128
/// (int4_wo, aiconfigurator's group size).
constexpr std::array<Format, 8> kFormats{{
    {"bfloat16", NumberFormat::kBf16, 16.0, 16.0},
    {"fp8", NumberFormat::kFp8, 8.0, 8.0},
    {"fp8_block", NumberFormat::kFp8, 8.0 + 32.0 / (128.0 * 128.0), 8.0},
    {"nvfp4", NumberFormat::kFp4, 4.5, 4.5},
    {"w4a8_mxfp4_mxfp8", NumberFormat::kFp8, 4.25, 8.25},
    {"w4a16_mxfp4", NumberFormat::kBf16, 4.25, 16.0},
    {"w4afp8", NumberFormat::kFp8, 4.25, 8.0},
    {"int4_wo", NumberFormat::kBf16, 4.125, 16.0},
}};

const Format* format_of(std::string_view dtype, std::string_view kernel_source = {}) {
  // Without MXFP4 units this path unpacks the experts to BF16 when it loads them: 16 experts of
  // 2880 x 2880 take 213 us on H200, 166 us at peak bandwidth in BF16 and 44 us in MXFP4.
  if (kernel_source == "sglang_fused_moe_triton" && dtype == "w4a16_mxfp4") dtype = "bfloat16";
  for (const Format& format : kFormats) {
    if (format.dtype == dtype) return &format;
  }
  return nullptr;
}

bool is_sglang_triton(const SeriesKey& key) {
  return key.kernel_source == "sglang_fused_moe_triton";
}

/// Gated and squared-ReLU experts, which run kernels of their own, under one kernel source.
bool mixes_activations(const SeriesKey& key) {
  return key.kernel_source == "sglang_flashinfer_cutlass_moe" && key.dtype == "nvfp4";
}

/// Squared-ReLU experts have one up projection (Nemotron-3). The TensorRT-LLM tables name them in
/// the kernel source; SGLang's CUTLASS table holds them among gated ones: top-22 models and the
/// 1856-wide one.
bool is_gated(const SeriesKey& key, const MoeRow& row) {
  if (key.kernel_source == "moe_torch_flow_nongated") return false;
  if (key.kernel_source == "sglang_flashinfer_cutlass_moe") {
    return row.top_k != 22.0 && row.inter_size != 1856.0;
  }
  return true;
}

/// Block-scaled FP4 tensor-core operands: scales lie in tiles of 128 rows, so the expert width is
/// padded to a multiple of 128 (a width of 84 costs what 128 does).
bool has_block_scaled_tiles(const SeriesKey& key) {
  return key.dtype == "nvfp4" || key.dtype == "w4a8_mxfp4_mxfp8";
}

/// Different routings that the tables' timing loops cycle through.
constexpr double kPowerLawRoutings = 5.0;

/// Rows of these models come from an older revision of SGLang's collector that hands a rank only
/// the tokens with an expert on it; the others pass every token and let the kernel skip remote
/// pairs. It shows in the token count at which the kernel changes its tile (2816/704: between 16
/// and 32 tokens at EP 32 and EP 128, where the full count would switch at 5 and at 2).
bool has_rank_local_tokens(const SeriesKey& key, const MoeRow& row) {
  if (key.engine != "sglang" || row.moe_ep_size == 1.0) return false;
  return (row.num_experts == 8.0 && row.top_k == 2.0) ||
         (row.hidden_size == 2816.0 && row.inter_size == 704.0);
}

/// Tokens with at least one of a rank's experts: exact for the round-robin generator, which gives a
/// rank that holds fewer experts than the stride one pair of a token; all pairs apart otherwise.
double rank_local_tokens(const MoeRow& row, double pairs_on_rank) {
  return std::max(1.0, std::min(row.num_tokens, pairs_on_rank));
}

using RoutingKey = std::tuple<double, double, double, double, Routing, double>;

MoeWork work_of(const SeriesKey& key, const MoeRow& row, std::map<RoutingKey, RoutedWork>* seen) {
  const Format* format = format_of(key.dtype, key.kernel_source);
  MoeWork work;
  MoeLaunch& launch = work.launch;
  launch.tokens = row.num_tokens;
  launch.hidden = row.hidden_size;
  launch.inter = row.inter_size / row.moe_tp_size;
  if (has_block_scaled_tiles(key)) launch.inter = std::ceil(launch.inter / 128.0) * 128.0;
  launch.top_k = row.top_k;
  launch.num_experts = row.num_experts;
  launch.local_experts = row.num_experts / row.moe_ep_size;
  launch.routing = row.routing;
  launch.power_law_alpha = row.power_law_alpha;
  launch.compute = format->compute;
  launch.weight_bits = format->weight_bits;
  launch.activation_bits = format->activation_bits;
  launch.gated = is_gated(key, row);

  const RoutingKey routing_key{row.num_tokens,       row.top_k,   row.num_experts,
                               launch.local_experts, row.routing, row.power_law_alpha};
  if (seen != nullptr) {
    const auto [found, fresh] = seen->try_emplace(routing_key);
    if (fresh) found->second = routed_work(launch);
    work.routed = found->second;
  } else {
    work.routed = routed_work(launch);
  }

  if (has_rank_local_tokens(key, row)) {
    launch.tokens = rank_local_tokens(row, work.routed.rows);
  }

  const double active = work.routed.active_experts;
  const double touched =
      row.routing == Routing::kRoundRobin
          ? active
          : launch.local_experts *
                (1.0 - std::pow(1.0 - active / launch.local_experts, kPowerLawRoutings));
  const double matrices = launch.gated ? 3.0 : 2.0;
  work.reuse_distance_bytes =
      touched * matrices * launch.inter * launch.hidden * launch.weight_bits / 8.0;
  return work;
}

bool explains(const SeriesKey& key) {
  return key.table == "moe_perf" && format_of(key.dtype) != nullptr;
}

/// True for parameters of structure that no row of this kernel has.
bool is_fixed(const SeriesKey& key, std::string_view name) {
  const bool triton = is_sglang_triton(key);
  if (name == "expert_seconds") return triton;
  if (name == "empty_block_cycles") return !triton;
  if (name == "row_block_cycles") return triton;
  if (name.ends_with("_many")) return !triton && !mixes_activations(key);
  return false;
}

std::vector<ParameterInfo> parameters(const SeriesKey& key, const LawDevice&) {
  std::vector<ParameterInfo> infos(kMoeParameters.begin(), kMoeParameters.end());
  for (ParameterInfo& info : infos) {
    if (is_fixed(key, info.name)) info.lower = info.upper = info.start;
  }
  return infos;
}

BoundLaw bind(const SeriesKey& key, const LawDevice& device, std::span<const Record> records) {
  struct Row {
    MoeKernelTraits traits;
    MoeWork work;
  };
  std::map<RoutingKey, RoutedWork> seen;
  std::vector<Row> rows;
  rows.reserve(records.size());
  for (const Record& record : records) {
    const auto& shape = std::get<MoeRow>(record.shape);
    rows.push_back({moe_kernel_traits(key, shape), work_of(key, shape, &seen)});
  }
  std::vector<double> features = feature_table<kNumMoeFeatures>(
      rows, [](const Row& row) { return moe_features(row.work.launch); });
  BoundLaw law = bind_law<MoeLaw<double>::kNumParameters>(
      std::move(rows), [device]<class Real>(std::span<const Real, MoeLaw<double>::kNumParameters> p,
                                            const Row& row) {
        return moe_seconds(MoeLaw<Real>::from(p), row.traits, row.work, device);
      });
  law = with_features<kNumMoeFeatures>(std::move(law), std::move(features));
  return with_reach<2>(std::move(law), feature_table<2>(records, [](const Record& record) {
                         const auto& row = std::get<MoeRow>(record.shape);
                         return std::array<double, 2>{row.num_tokens, row.moe_tp_size};
                       }));
}

std::string shape_group(const Record& record) {
  const auto& row = std::get<MoeRow>(record.shape);
  std::string text;
  for (const double x : {row.hidden_size, row.inter_size, row.top_k, row.num_experts,
                         row.moe_tp_size, row.moe_ep_size}) {
    text += std::to_string(static_cast<long>(x));
    text += '/';
  }
  return text;
}

/// 512 tokens and more, or experts cut eight-fold and more.
std::vector<bool> frontier(std::span<const Record> records) {
  std::vector<bool> outside;
  outside.reserve(records.size());
  for (const Record& record : records) {
    const auto& row = std::get<MoeRow>(record.shape);
    outside.push_back(row.num_tokens >= 512.0 || row.moe_tp_size >= 8.0);
  }
  return outside;
}

}  // namespace

MoeKernelTraits moe_kernel_traits(const SeriesKey& key, const MoeRow& row) {
  if (is_sglang_triton(key)) {
    if (key.dtype != "fp8_block") return triton_bf16_moe();
    return triton_fp8_block_moe(std::fmod(row.inter_size / row.moe_tp_size, 128.0) == 0.0);
  }
  MoeKernelTraits traits = grouped_moe(key.dtype == "bfloat16");
  if (key.kernel_source == "moe_torch_flow_triton_fp8_block") {
    // The time does not fall with EP: a rank computes every pair, remote ones on a local expert.
    traits.computes_remote = true;
    traits.tile = {0, 128.0, 128.0};
  }
  // SGLang's Marlin runs other ranks' pairs on local expert 0, as its collector clamps their ids.
  if (key.kernel_source.starts_with("sglang_marlin_moe")) traits.computes_remote = true;
  traits.many_tile = traits.tile;
  traits.always_many = mixes_activations(key) && !is_gated(key, row);
  return traits;
}

MoeWork moe_work(const SeriesKey& key, const MoeRow& row) { return work_of(key, row, nullptr); }

const Family& moe_family() {
  static const Family kFamily{.name = "moe",
                              .explains = explains,
                              .parameters = parameters,
                              .bind = bind,
                              .shape_group = shape_group,
                              .frontier = frontier};
  return kFamily;
}

}  // namespace fulcrum::calibrate
