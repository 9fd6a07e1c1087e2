#include "calibrate/size_axis.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "calibrate/measurement_table.h"

namespace fulcrum::calibrate {
namespace {

/// The unit that multiplies, by the tables' dtype labels. w4a16 and int4_wo weights are widened to
/// BF16 first; w4a8_mxfp4_mxfp8 runs at the FP8 rate.
NumberFormat compute_format(const std::string& dtype) {
  if (dtype == "nvfp4") return NumberFormat::kFp4;
  if (dtype.find("fp8") != std::string::npos) return NumberFormat::kFp8;
  return NumberFormat::kBf16;
}

double weight_bits(const std::string& dtype) {
  if (dtype.find('4') != std::string::npos) return 4.0;
  return compute_format(dtype) == NumberFormat::kFp8 ? 8.0 : 16.0;
}

}  // namespace

SizeAxis size_axis(const Shape& shape) {
  SizeAxis axis;
  if (const auto* gemm = std::get_if<GemmRow>(&shape)) {
    axis.rest = {gemm->n, gemm->k};
    axis.size = gemm->m;
  } else if (const auto* moe = std::get_if<MoeRow>(&shape)) {
    axis.rest = {moe->hidden_size,
                 moe->inter_size,
                 moe->top_k,
                 moe->num_experts,
                 moe->moe_tp_size,
                 moe->moe_ep_size,
                 static_cast<double>(moe->routing),
                 moe->power_law_alpha};
    axis.size = moe->num_tokens;
  } else if (const auto* attention = std::get_if<AttentionRow>(&shape)) {
    const auto label = std::hash<std::string>{}(attention->model) >> 12;  // exact in a double
    axis.rest = {static_cast<double>(label), attention->num_heads,      attention->query_tokens,
                 attention->tp_size,         attention->context_tokens, attention->compress_ratio};
    axis.size = attention->batch_size;
  } else if (const auto* mhc = std::get_if<MhcRow>(&shape)) {
    axis.rest = {mhc->num_sites, mhc->streams, mhc->hidden_size, mhc->sinkhorn_iterations};
    axis.size = mhc->num_tokens;
  } else if (const auto* collective = std::get_if<CollectiveRow>(&shape)) {
    axis.rest = {collective->num_gpus, static_cast<double>(collective->kind)};
    axis.size = collective->message_size;
  }
  return axis;
}

double least_seconds(const SeriesKey& key, const Record& record, const LawDevice& device) {
  const double peak = device.peak(compute_format(key.dtype));
  if (const auto* gemm = std::get_if<GemmRow>(&record.shape)) {
    return 2.0 * gemm->m * gemm->n * gemm->k / peak;
  }
  if (const auto* moe = std::get_if<MoeRow>(&record.shape)) {
    // Only dealt-out routing fixes the share of one rank. Non-gated experts have two matrices.
    if (moe->routing != Routing::kRoundRobin) return 0.0;
    const double matrices = key.kernel_source.find("nongated") != std::string::npos ? 2.0 : 3.0;
    const double slots = std::floor(moe->num_tokens * moe->top_k / moe->moe_ep_size);
    return 2.0 * matrices * slots * moe->hidden_size * (moe->inter_size / moe->moe_tp_size) / peak;
  }
  if (const auto* collective = std::get_if<CollectiveRow>(&record.shape)) {
    if (device.link_bandwidth_bytes_per_second <= 0.0) return 0.0;
    // Every rank must receive what it lacks of the message; in-switch reduction may do with it
    // once.
    const double share = (collective->num_gpus - 1.0) / collective->num_gpus;
    return share * collective->message_size / device.link_bandwidth_bytes_per_second;
  }
  return 0.0;
}

double warm_roofline_seconds(const SeriesKey& key, const Record& record, const LawDevice& device) {
  double bytes = 0.0;
  if (const auto* gemm = std::get_if<GemmRow>(&record.shape)) {
    bytes = gemm->n * gemm->k * weight_bits(key.dtype) / 8.0 + 2.0 * gemm->m * (gemm->n + gemm->k);
  } else if (const auto* moe = std::get_if<MoeRow>(&record.shape)) {
    const double experts = std::min(moe->num_experts, moe->num_tokens * moe->top_k);
    bytes = 3.0 * experts / moe->moe_ep_size * moe->hidden_size * moe->inter_size /
            moe->moe_tp_size * weight_bits(key.dtype) / 8.0;
  } else if (const auto* mhc = std::get_if<MhcRow>(&record.shape)) {
    bytes = 2.0 * 2.0 * mhc->num_tokens * mhc->streams * mhc->hidden_size;
  }
  return std::max(least_seconds(key, record, device),
                  bytes / device.dram_bandwidth_bytes_per_second);
}

}  // namespace fulcrum::calibrate
