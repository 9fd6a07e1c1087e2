// Parameters of the GEMM law and the structure (library rule) they are fitted under.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "model/laws/parameter_info.h"

namespace fulcrum {

inline constexpr std::size_t kNumGemmResidual = 9;
inline constexpr std::size_t kNumGemmParameters = 31 + kNumGemmResidual;

/// Fitted numbers of one kernel on one device. Ratios are to the device's peak DRAM bandwidth.
template <class Real>
struct GemmLaw {
  Real launch_floor_seconds{};     ///< graph-launch to launch, tail and quantiser launch included
  Real prologue_seconds{};         ///< pipeline fill and epilogue of one CTA
  Real compute_efficiency{};       ///< of the tensor peak, inside a full tile
  Real sm_fill_bytes_per_clock{};  ///< operand bytes one SM takes from L2
  Real sm_miss_bytes_per_clock{};  ///< weight bytes one SM keeps in flight to DRAM
  Real iteration_floor_seconds{};  ///< shortest k-iteration (latency / stages)
  Real iteration_overhead_seconds{};  ///< added to each k-iteration (scale promotion)
  Real l2_bandwidth_ratio{};
  Real dram_efficiency{};
  Real l2_resident_fraction{};        ///< of the L2 that reused weights fill before the first miss
  Real l2_transition_width{};         ///< relative growth from the first miss to no hit
  Real activation_bandwidth_ratio{};  ///< for A and C while the L2 holds them
  Real throttle_slope{};
  Real throttle_seconds{};
  Real tail_fraction{};          ///< of a last, partial wave that is paid
  Real split_floor_seconds{};    ///< reduction launch of a split-k
  Real split_bandwidth_ratio{};  ///< of the L2 bandwidth, for FP32 partial sums
  Real overhang_seconds{};       ///< per k-iteration of a tile that hangs over the edge in m
  Real ragged_iteration_seconds{};
  Real wide_tile_slowdown{};
  Real crowding{};
  Real quantise_bandwidth_ratio{};
  Real quantise_row_seconds{};
  Real quantise_column_seconds{};
  Real gemv_floor_seconds{};
  Real gemv_l2_ratio{};
  Real gemv_dram_efficiency{};
  Real gemv_k_seconds{};
  Real gemv_column_seconds{};
  Real gemv_column_token_seconds{};
  Real gemv_compute_efficiency{};
  std::array<Real, kNumGemmResidual> residual{};

  static GemmLaw from(std::span<const Real, kNumGemmParameters> p) {
    GemmLaw law{p[0],  p[1],  p[2],  p[3],  p[4],  p[5],  p[6],  p[7],  p[8],  p[9],  p[10],
                p[11], p[12], p[13], p[14], p[15], p[16], p[17], p[18], p[19], p[20], p[21],
                p[22], p[23], p[24], p[25], p[26], p[27], p[28], p[29], p[30], {}};
    for (std::size_t i = 0; i < kNumGemmResidual; ++i) law.residual[i] = p[31 + i];
    return law;
  }

  /// The values without their derivatives.
  GemmLaw<double> plain() const {
    const auto v = [](const Real& x) -> double {
      if constexpr (requires { x.value; }) {
        return x.value;
      } else {
        return x;
      }
    };
    GemmLaw<double> r{v(launch_floor_seconds),
                      v(prologue_seconds),
                      v(compute_efficiency),
                      v(sm_fill_bytes_per_clock),
                      v(sm_miss_bytes_per_clock),
                      v(iteration_floor_seconds),
                      v(iteration_overhead_seconds),
                      v(l2_bandwidth_ratio),
                      v(dram_efficiency),
                      v(l2_resident_fraction),
                      v(l2_transition_width),
                      v(activation_bandwidth_ratio),
                      v(throttle_slope),
                      v(throttle_seconds),
                      v(tail_fraction),
                      v(split_floor_seconds),
                      v(split_bandwidth_ratio),
                      v(overhang_seconds),
                      v(ragged_iteration_seconds),
                      v(wide_tile_slowdown),
                      v(crowding),
                      v(quantise_bandwidth_ratio),
                      v(quantise_row_seconds),
                      v(quantise_column_seconds),
                      v(gemv_floor_seconds),
                      v(gemv_l2_ratio),
                      v(gemv_dram_efficiency),
                      v(gemv_k_seconds),
                      v(gemv_column_seconds),
                      v(gemv_column_token_seconds),
                      v(gemv_compute_efficiency),
                      {}};
    for (std::size_t i = 0; i < kNumGemmResidual; ++i) r.residual[i] = v(residual[i]);
    return r;
  }
};

/// One entry of a library's tile menu, and the m and n it is used for (above_m < m <= max_m, ...).
struct GemmTile {
  double block_m = 128.0;
  double block_n = 128.0;  ///< the widest allowed, where column_granularity is set
  double above_m = 0.0;
  double max_m = std::numeric_limits<double>::infinity();
  double above_n = 0.0;
  double max_n = std::numeric_limits<double>::infinity();
};

/// How a library chooses and what its kernel pays for; not fitted. Tables in gemm_structures.h.
struct GemmStructure {
  std::string_view name;
  std::array<GemmTile, 8> tiles{};
  std::size_t num_tiles = 0;
  double block_k = 64.0;
  double row_granularity = 0.0;     ///< tiles shrink in m to this multiple; 0: always full
  double column_granularity = 0.0;  ///< block_n by fewest waves, in these steps; 0: as listed
  double max_split = 1.0;
  double min_split_iterations = 1.0;
  double split_min_work = 0.0;  ///< m n k below which the library does not split
  double split_min_k = 0.0;
  double gemv_max_m = 0.0;
  int overlap_order = 2;  ///< 2 or 4
  bool quantises_input = false;
  bool fetches_live_rows = false;  ///< rows past m are neither fetched nor counted in L2 traffic
  bool limits_sm_fill = false;
  bool limits_sm_miss = false;
  bool has_overhead = false;  ///< iteration_overhead_seconds instead of iteration_floor_seconds
  bool pays_overhang = false;
  bool slow_when_ragged = false;
  bool slow_when_wide = false;
  bool crowds = false;
  bool gemv_by_column = false;
  bool has_residual = false;
};

/// Bounds and starts of a structure's parameters. A term the structure does not have is held at
/// the value that removes it (lower == upper).
constexpr std::array<ParameterInfo, kNumGemmParameters> gemm_parameters(const GemmStructure& s) {
  const bool splits = s.max_split > 1.0;
  const bool gemv = s.gemv_max_m > 0.0;
  const bool columns = gemv && s.gemv_by_column;
  const auto use = [](bool used, ParameterInfo info, double neutral) {
    if (!used) info.lower = info.upper = info.start = neutral;
    return info;
  };
  constexpr Transfer kTime = Transfer::kTime;
  std::array<ParameterInfo, kNumGemmParameters> p{{
      {"launch_floor_seconds", "s", 1e-6, 2e-5, 4e-6, kTime},
      {"prologue_seconds", "s", 1e-8, 6e-6, 5e-7, kTime},
      {"compute_efficiency", "1", 0.2, 1.0, 0.85},
      use(s.limits_sm_fill, {"sm_fill_bytes_per_clock", "B", 5.0, 2000.0, 80.0}, 2000.0),
      use(s.limits_sm_miss, {"sm_miss_bytes_per_clock", "B", 2.0, 500.0, 30.0}, 500.0),
      use(!s.has_overhead, {"iteration_floor_seconds", "s", 1e-9, 2e-6, 8e-8, kTime}, 0.0),
      use(s.has_overhead, {"iteration_overhead_seconds", "s", 1e-9, 2e-6, 1e-7, kTime}, 0.0),
      {"l2_bandwidth_ratio", "1", 0.3, 25.0, 3.0},
      {"dram_efficiency", "1", 0.3, 1.0, 0.9},
      {"l2_resident_fraction", "1", 0.05, 1.5, 0.8},
      {"l2_transition_width", "1", 0.02, 10.0, 0.3},
      {"activation_bandwidth_ratio", "1", 0.05, 25.0, 2.0},
      {"throttle_slope", "1", 1e-3, 1.0, 0.1},
      {"throttle_seconds", "s", 1e-5, 1e-2, 3e-4, kTime},
      {"tail_fraction", "1", 0.02, 1.0, 0.7},
      use(splits, {"split_floor_seconds", "s", 1e-8, 1e-5, 1.5e-6, kTime}, 0.0),
      use(splits, {"split_bandwidth_ratio", "1", 0.01, 50.0, 1.0}, 1.0),
      use(s.pays_overhang, {"overhang_seconds", "s", 1e-12, 1e-7, 5e-9, kTime}, 0.0),
      use(s.slow_when_ragged, {"ragged_iteration_seconds", "s", 1e-9, 1e-6, 8e-8, kTime}, 0.0),
      use(s.slow_when_wide, {"wide_tile_slowdown", "1", 1.01, 6.0, 3.0}, 1.0),
      use(s.crowds, {"crowding", "1", 0.01, 3.0, 0.5}, 0.0),
      use(s.quantises_input, {"quantise_bandwidth_ratio", "1", 0.05, 50.0, 1.5}, 1.0),
      use(s.quantises_input, {"quantise_row_seconds", "s", 1e-12, 1e-7, 1e-9, kTime}, 0.0),
      use(s.quantises_input, {"quantise_column_seconds", "s", 1e-14, 1e-9, 3e-12, kTime}, 0.0),
      use(gemv, {"gemv_floor_seconds", "s", 1e-6, 2e-5, 3e-6, kTime}, 0.0),
      use(gemv, {"gemv_l2_ratio", "1", 0.3, 15.0, 2.0}, 1.0),
      use(gemv, {"gemv_dram_efficiency", "1", 0.3, 1.0, 0.9}, 1.0),
      use(gemv, {"gemv_k_seconds", "s", 1e-13, 1e-9, 3e-11, kTime}, 0.0),
      use(columns, {"gemv_column_seconds", "s", 1e-14, 1e-8, 1e-10, kTime}, 0.0),
      use(columns, {"gemv_column_token_seconds", "s", 1e-15, 1e-9, 1e-11, kTime}, 0.0),
      use(columns, {"gemv_compute_efficiency", "1", 1e-3, 1.0, 0.03}, 1e3),
  }};
  constexpr std::array<std::string_view, kNumGemmResidual> kNames{
      "residual_m",  "residual_n",  "residual_k",  "residual_mm", "residual_nn",
      "residual_kk", "residual_mn", "residual_mk", "residual_nk"};
  for (std::size_t i = 0; i < kNumGemmResidual; ++i) {
    p[31 + i] = use(s.has_residual, {kNames[i], "1", -0.3, 0.3, 0.0}, 0.0);
  }
  return p;
}

}  // namespace fulcrum
