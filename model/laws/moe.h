// Routed experts of one rank: gate_up GEMM, activation, down GEMM, over the experts that got rows.
//
// Each of the two grouped GEMMs is priced as the larger, plus a share of the smaller, of
//   memory   active experts x weight bytes at the achieved bandwidth (L2 rate if still resident)
//   tiles    k-steps x (cycles of one CTA's step + cycles per further tile of the SM), where tiles
//   =
//            row blocks x ceil(N / tile columns): few tiles are bound by the latency of one CTA's
//            k-loop, many by the SM's throughput
// to which come a launch floor (align, sort, quantise, sum: several launches), a cost per local
// expert (problem visitor of grouped kernels), per routed pair, and the activation traffic.
//
// What a kernel does to shapes (tile sizes, when it changes them, whether it computes other ranks'
// rows or launches a padded grid) is structure, known from its source, in MoeKernelTraits; what is
// fitted is in MoeLaw. Expert counts come from routed_work (F8).
// Leaves out: tile choice by autotuners (a table's tuned shapes scatter by 10-30 % about one
// configuration), placement of the few real CTAs of a padded grid on the SMs (53 or 75 us for the
// same work), the spread of row counts between experts beyond block padding.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/law_math.h"
#include "model/laws/parameter_info.h"
#include "model/laws/routing.h"

namespace fulcrum {

struct MoeTile {
  std::size_t rows_index = 2;  ///< into kBlockRows
  double columns = 128.0;
  double k = 64.0;
};

/// Structure of a kernel, from its source.
struct MoeKernelTraits {
  MoeTile tile;  ///< used up to as many tokens as local experts, or always
  MoeTile many_tile;
  bool switches_tile = false;  ///< to many_tile when tokens exceed local experts
  bool always_many = false;    ///< this row runs the other of two kernels that share a series
  bool padded_grid = false;    ///< launches blocks for the worst case; empty ones return at once
  bool rows_cost = false;      ///< a tile takes longer with more rows (its menu has lower tiles)
  /// Pairs of other ranks run on a local expert instead of being cut.
  bool computes_remote = false;
  /// Up to this many pairs (and 64 local experts) one small kernel aligns rows at a cost per pair.
  double small_align_pairs = 0.0;
};

/// MoeLaunch and the work its routing makes of it.
struct MoeWork {
  MoeLaunch launch;
  RoutedWork routed;
  /// Weight bytes touched between two uses of the same expert; kNeverReused when cold.
  double reuse_distance_bytes = kNeverReused;
};

template <class Real>
struct MoeLaw {
  Real launch_floor_seconds{};
  Real expert_seconds{};          ///< per local expert
  Real pair_seconds{};            ///< per (token, expert) pair of the launch, see small_align_pairs
  Real memory_efficiency{};       ///< of DRAM bandwidth, with `tile`
  Real memory_efficiency_many{};  ///< with `many_tile`
  Real cache_fraction{};          ///< of L2 that keeps weights from one launch to the next
  Real resident_speedup{};        ///< rate of resident weights over DRAM's
  Real step_cycles{};             ///< of one CTA alone on its SM, per k-step of `tile`
  Real extra_tile_cycles{};       ///< per further tile on the SM and k-step
  Real step_cycles_many{};        ///< the same two with `many_tile`
  Real extra_tile_cycles_many{};
  Real hidden_passes{};       ///< DRAM passes over [pairs, hidden] in 16 bit
  Real inter_passes{};        ///< DRAM passes over [pairs, inter] in 16 bit
  Real empty_block_cycles{};  ///< per empty CTA of a padded grid and SM
  Real row_block_cycles{};    ///< per 16 rows of a tile and k-step, all tiles of an SM
  Real token_passes{};        ///< DRAM passes over [tokens, hidden] in 16 bit
  Real tile_cycles{};         ///< per tile of an SM, whatever its k: fill, epilogue, scheduling
  Real unhidden_share{};      ///< of the smaller of memory and tile time, not hidden by the larger

  static constexpr std::size_t kNumParameters = 18;
  static MoeLaw from(std::span<const Real, kNumParameters> p) {
    return {p[0], p[1],  p[2],  p[3],  p[4],  p[5],  p[6],  p[7],  p[8],
            p[9], p[10], p[11], p[12], p[13], p[14], p[15], p[16], p[17]};
  }
};

/// Start values: fits to the aiconfigurator tables of RTX PRO 6000 and H200. Names that begin with
/// many_ and the grid's parameter are held at their start where the kernel has no such thing.
inline constexpr std::array<ParameterInfo, MoeLaw<double>::kNumParameters> kMoeParameters{{
    {"launch_floor_seconds", "s", 3e-6, 1.5e-4, 1.5e-5, Transfer::kTime},
    {"expert_seconds", "s", 1e-11, 2e-6, 3e-8, Transfer::kTime},
    {"pair_seconds", "s", 1e-12, 3e-7, 5e-9, Transfer::kTime},
    {"memory_efficiency", "1", 0.1, 1.0, 0.9, Transfer::kDimensionless},
    {"memory_efficiency_many", "1", 0.1, 1.0, 0.7, Transfer::kDimensionless},
    {"cache_fraction", "1", 0.2, 1.1, 0.9, Transfer::kDimensionless},
    {"resident_speedup", "1", 1.0, 20.0, 3.0, Transfer::kDimensionless},
    {"step_cycles", "1", 10.0, 2e4, 800.0, Transfer::kDimensionless},
    {"extra_tile_cycles", "1", 0.1, 5e3, 150.0, Transfer::kDimensionless},
    {"step_cycles_many", "1", 10.0, 2e4, 800.0, Transfer::kDimensionless},
    {"extra_tile_cycles_many", "1", 0.1, 5e3, 300.0, Transfer::kDimensionless},
    {"hidden_passes", "1", 0.01, 40.0, 1.5, Transfer::kDimensionless},
    {"inter_passes", "1", 0.01, 40.0, 3.0, Transfer::kDimensionless},
    {"empty_block_cycles", "1", 1.0, 5e3, 300.0, Transfer::kDimensionless},
    {"row_block_cycles", "1", 0.1, 2e3, 30.0, Transfer::kDimensionless},
    {"token_passes", "1", 0.01, 40.0, 3.0, Transfer::kDimensionless},
    {"tile_cycles", "1", 1.0, 2e4, 300.0, Transfer::kDimensionless},
    {"unhidden_share", "1", 1e-3, 1.0, 0.3, Transfer::kDimensionless},
}};

/// Seconds by part; they sum to the launch's time.
template <class Real>
struct MoeTime {
  Real fixed{};  ///< floor, per expert, per pair
  Real up{};     ///< gate_up GEMM
  Real down{};
  Real activations{};  ///< traffic of activations between the kernels

  Real total() const { return fixed + up + down + activations; }
};

template <class Real>
MoeTime<Real> moe_time(const MoeLaw<Real>& law, const MoeKernelTraits& traits, const MoeWork& work,
                       const LawDevice& device) {
  const MoeLaunch& launch = work.launch;
  const double pairs = launch.tokens * launch.top_k;
  const bool many =
      traits.always_many || (traits.switches_tile && launch.tokens > launch.local_experts);
  const MoeTile& tile = many ? traits.many_tile : traits.tile;
  const double tile_rows = kBlockRows[tile.rows_index];
  const double remote_pairs = traits.computes_remote ? pairs - work.routed.rows : 0.0;
  const double blocks = work.routed.blocks(tile.rows_index) + std::ceil(remote_pairs / tile_rows);
  const double touched_pairs =
      traits.padded_grid || traits.computes_remote ? pairs : work.routed.rows;

  // Reciprocals once: divisions are most of the law's cost.
  const double seconds_per_byte = 1.0 / device.dram_bandwidth_bytes_per_second;
  const double seconds_per_cycle = 1.0 / device.sm_clock_hertz;
  const double per_sm = 1.0 / device.num_sms;
  Real slowness = 1.0 / (many ? law.memory_efficiency_many : law.memory_efficiency);
  if (work.reuse_distance_bytes != kNeverReused) {
    const Real resident =
        resident_share(work.reuse_distance_bytes, Real(law.cache_fraction * device.l2_bytes));
    slowness = slowness * ((1.0 - resident) + resident / law.resident_speedup);
  }
  const Real& step = many ? law.step_cycles_many : law.step_cycles;
  const Real& extra = many ? law.extra_tile_cycles_many : law.extra_tile_cycles;

  double empty_blocks = 0.0;
  if (traits.padded_grid) {
    const double padded_rows = pairs < launch.local_experts
                                   ? pairs * tile_rows
                                   : pairs + launch.local_experts * (tile_rows - 1.0);
    empty_blocks = std::max(0.0, std::ceil(padded_rows / tile_rows) - blocks);
  }
  const auto gemm = [&](double n, double k) {
    const double columns = std::ceil(n / tile.columns);
    const double weight_bytes = work.routed.active_experts * n * k * launch.weight_bits * 0.125;
    const double tiles_per_sm = blocks * columns * per_sm;
    const double further = std::max(0.0, tiles_per_sm - 1.0);
    const Real memory = weight_bytes * seconds_per_byte * slowness;
    Real k_step_cycles = step + further * extra;
    if (traits.rows_cost) {
      const double row_blocks = work.routed.blocks(0) + std::ceil(remote_pairs / kBlockRows[0]);
      k_step_cycles += row_blocks * columns * per_sm * law.row_block_cycles;
    }
    const Real tiles =
        (std::ceil(k / tile.k) * k_step_cycles + std::max(1.0, tiles_per_sm) * law.tile_cycles) *
        seconds_per_cycle;
    const Real larger = smooth_max(memory, tiles);
    Real seconds = larger + law.unhidden_share * (memory + tiles - larger);
    if (empty_blocks > 0.0) {
      seconds += law.empty_block_cycles * (empty_blocks * columns * per_sm * seconds_per_cycle);
    }
    return seconds;
  };

  MoeTime<Real> time;
  time.fixed = law.launch_floor_seconds + launch.local_experts * law.expert_seconds;
  const bool small_align = pairs < traits.small_align_pairs && launch.local_experts <= 64.0;
  if (traits.small_align_pairs == 0.0 || small_align) time.fixed += pairs * law.pair_seconds;
  time.up = gemm(launch.gated ? 2.0 * launch.inter : launch.inter, launch.hidden);
  time.down = gemm(launch.hidden, launch.inter);
  time.activations =
      2.0 * seconds_per_byte *
      (touched_pairs * (launch.hidden * law.hidden_passes + launch.inter * law.inter_passes) +
       launch.tokens * launch.hidden * law.token_passes);
  return time;
}

template <class Real>
Real moe_seconds(const MoeLaw<Real>& law, const MoeKernelTraits& traits, const MoeWork& work,
                 const LawDevice& device) {
  return moe_time(law, traits, work, device).total();
}

}  // namespace fulcrum
