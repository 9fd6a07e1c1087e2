// One compressed-attention layer in decode, projections included: what the public module tables
// time. The module is the sum of its kernels' own laws, so that a fit to modules yields parameters
// that price each kernel by itself:
//   t = other + projections + attention + scan + top_k
// Two builds: the June 2026 SM120 fallback (row loop, dense torch scan over the configured context)
// and the SM90 build (split-K FlashMLA, live-context indexer).
// The module runs alone in a captured graph and again and again: weights that fit L2 stay there.
// Leaves out: overlap of side streams (the tables cannot tell it from faster kernels).
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "model/laws/context_scan.h"
#include "model/laws/row_loop_attention.h"
#include "model/laws/split_k_attention.h"

namespace fulcrum {

/// One layer on one rank. `scan.keys` = 0 where the layer has no indexer (HCA).
struct AttentionModuleLaunch {
  static constexpr std::size_t kMaxProjections = 8;
  std::array<GemmLaunch, kMaxProjections> projections{};
  std::size_t num_projections = 0;
  double tokens = 0.0;
  double context_tokens = 0.0;
  AttentionLaunch attention;
  bool has_indexer = false;
  ContextScanLaunch scan;
  double top_k = 0.0;

  double weight_bytes() const {
    double bytes = 0.0;
    for (std::size_t i = 0; i < num_projections; ++i) {
      const GemmLaunch& g = projections[i];
      bytes += g.groups * g.n * g.k * g.weight_bits / 8.0;
    }
    return bytes;
  }
};

/// Seconds by kernel; they sum to the module's time.
template <class Real>
struct AttentionModuleTime {
  Real other{};
  Real projections{};
  Real attention{};
  Real scan{};
  Real top_k{};

  Real total() const { return other + projections + attention + scan + top_k; }
};

// ---- June 2026 fallback -----------------------------------------------------------------------

template <class Real>
struct FallbackModuleLaw {
  Real other_seconds{};          ///< norms, RoPE, quantisers, stores: launches that do not scale
  Real context_token_seconds{};  ///< index building over the context, whole batch at once
  Real projection_efficiency{};  ///< of DRAM bandwidth, all projections together
  Real resident_speedup{};       ///< rate over DRAM's when the layer's weights sit in L2
  Real token_seconds{};          ///< per token: padding, copies, merging of the two parts
  Real cycles_per_row{};         ///< RowLoopAttentionLaw
  Real tail_waves{};             ///< RowLoopAttentionLaw
  Real scan_bytes_per_key{};     ///< DenseScanLaw
  Real scan_resident_saving{};   ///< DenseScanLaw

  static FallbackModuleLaw from(std::span<const Real, 9> p) {
    return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]};
  }
};

inline constexpr std::array<ParameterInfo, 9> kFallbackModuleParameters{{
    {"other_seconds", "s", 1e-6, 5e-4, 5e-5, Transfer::kTime},
    {"context_token_seconds", "s", 1e-11, 1e-7, 1e-9, Transfer::kTime},
    {"projection_efficiency", "1", 0.05, 1.0, 0.6, Transfer::kDimensionless},
    {"resident_speedup", "1", 1.0, 10.0, 2.0, Transfer::kDimensionless},
    {"token_seconds", "s", 1e-9, 1e-4, 1e-6, Transfer::kTime},
    {"cycles_per_row", "1", 8.0, 1e4, 580.0, Transfer::kDimensionless},
    {"tail_waves", "1", 1e-3, 1.0, 0.12, Transfer::kDimensionless},
    {"scan_bytes_per_key", "B", 200.0, 5e4, 3600.0, Transfer::kDimensionless},
    {"scan_resident_saving", "1", 1e-3, 0.9, 0.17, Transfer::kDimensionless},
}};

template <class Real>
AttentionModuleTime<Real> fallback_module_seconds(const FallbackModuleLaw<Real>& law,
                                                  const AttentionModuleLaunch& launch,
                                                  const LawDevice& device) {
  AttentionModuleTime<Real> time;
  const double weight_bytes = launch.weight_bytes();
  const double resident = resident_share(weight_bytes, device.l2_bytes);
  time.projections = weight_bytes / device.dram_bandwidth_bytes_per_second /
                     law.projection_efficiency *
                     ((1.0 - resident) + resident / law.resident_speedup);
  const RowLoopAttentionLaw<Real> row_loop{Real(0.0), law.cycles_per_row, law.tail_waves};
  time.attention = row_loop_attention_seconds(row_loop, launch.attention, device);
  if (launch.has_indexer) {
    const DenseScanLaw<Real> scan{Real(0.0), law.scan_bytes_per_key, law.scan_resident_saving};
    time.scan = dense_scan_seconds(scan, launch.scan, device);
  }
  time.other = law.other_seconds + launch.context_tokens * law.context_token_seconds +
               launch.tokens * law.token_seconds;
  return time;
}

// ---- SM90 build -------------------------------------------------------------------------------

template <class Real>
struct SplitKModuleLaw {
  Real other_seconds{};         ///< launches that do not scale, layers without indexer
  Real indexer_seconds{};       ///< the same for the indexer's own launches
  Real gemm_switch_seconds{};   ///< more than one token: GEMV kernels give way to GEMM
  Real projection_bandwidth{};  ///< of DRAM bandwidth
  Real projection_compute{};    ///< of the format's peak
  Real projection_fill_rows{};  ///< rows a tile computes in vain
  Real cache_fraction{};        ///< of L2 that holds weights from one replay to the next
  Real resident_saving{};       ///< of the weight time when they are resident
  Real attention_compute{};     ///< SplitKAttentionLaw
  Real query_passes{};          ///< SplitKAttentionLaw
  Real token_seconds{};         ///< per token, elementwise
  Real scan_bytes_per_key{};    ///< logits, selection and index building per key and token
  Real selection_seconds{};     ///< top_k_seconds

  static SplitKModuleLaw from(std::span<const Real, 13> p) {
    return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12]};
  }
};

inline constexpr std::array<ParameterInfo, 13> kSplitKModuleParameters{{
    {"other_seconds", "s", 5e-6, 2e-4, 4e-5, Transfer::kTime},
    {"indexer_seconds", "s", 1e-7, 1e-4, 1e-5, Transfer::kTime},
    {"gemm_switch_seconds", "s", 1e-8, 3e-5, 4e-6, Transfer::kTime},
    {"projection_bandwidth", "1", 0.1, 1.0, 0.9, Transfer::kDimensionless},
    {"projection_compute", "1", 0.05, 1.0, 0.7, Transfer::kDimensionless},
    {"projection_fill_rows", "1", 0.01, 200.0, 20.0, Transfer::kDimensionless},
    {"cache_fraction", "1", 0.3, 1.0, 0.9, Transfer::kDimensionless},
    {"resident_saving", "1", 0.01, 0.95, 0.7, Transfer::kDimensionless},
    {"attention_compute", "1", 0.05, 1.0, 0.66, Transfer::kDimensionless},
    {"query_passes", "1", 0.1, 50.0, 6.0, Transfer::kDimensionless},
    {"token_seconds", "s", 1e-11, 3e-7, 1e-8, Transfer::kTime},
    {"scan_bytes_per_key", "B", 10.0, 2e4, 1400.0, Transfer::kDimensionless},
    {"selection_seconds", "s", 1e-6, 5e-4, 8e-5, Transfer::kTime},
}};

template <class Real>
AttentionModuleTime<Real> split_k_module_seconds(const SplitKModuleLaw<Real>& law,
                                                 const AttentionModuleLaunch& launch,
                                                 const LawDevice& device) {
  AttentionModuleTime<Real> time;
  const double bandwidth = device.dram_bandwidth_bytes_per_second;
  const Real resident =
      resident_share(launch.weight_bytes(), Real(law.cache_fraction * device.l2_bytes));
  const Real weight_rate = (1.0 - resident * law.resident_saving) / law.projection_bandwidth;
  for (std::size_t i = 0; i < launch.num_projections; ++i) {
    const GemmLaunch& g = launch.projections[i];
    const double weights = g.groups * g.n * g.k;
    const Real memory = weights * g.weight_bits / 8.0 / bandwidth * weight_rate;
    const Real compute = (g.m + law.projection_fill_rows) *
                         (2.0 * weights / device.peak(g.compute)) / law.projection_compute;
    time.projections += smooth_max(memory, compute);
  }
  const SplitKAttentionLaw<Real> split_k{Real(0.0), law.attention_compute, law.query_passes,
                                         Real(1.0)};
  time.attention = split_k_attention_seconds(split_k, launch.attention, device);
  time.other = law.other_seconds + launch.tokens * law.token_seconds;
  if (launch.tokens > 1.0) time.other += law.gemm_switch_seconds;
  if (launch.has_indexer) {
    time.other += law.indexer_seconds;
    time.scan = launch.tokens * launch.scan.keys / bandwidth * law.scan_bytes_per_key;
    time.top_k =
        top_k_seconds(law.selection_seconds, launch.tokens, launch.scan.keys, launch.top_k, device);
  }
  return time;
}

}  // namespace fulcrum
