// Cost law of a dense tiled GEMM, C[m,n] = A[m,k] B[n,k]^T, as a library launches it.
//
//   t = t0 + quantise(m,k) + sqrt[p]( cta^p + l2^p + dram^p ) + split + throttle
//   cta   waves x (prologue + k-iterations x iteration);  the CTA whose SM is busy longest
//   l2    bytes all CTAs fetch (operands re-read by every tile that needs them) / L2 bandwidth
//   dram  weight bytes the L2 does not hold + activations in and out / DRAM bandwidth
// p (2 or 4) says how well the three overlap. Which tile and split a library runs is not a
// parameter but a rule in GemmStructure: by m, the fastest of a menu, or the fewest waves.
// Launches with m <= gemv_max_m take a separate path without tiles.
//
// Leaves out: cluster multicast, several CTAs on one SM, odd alignments, a library's wrong choices
// (cuBLAS sometimes runs a tile 1.3-2x slower than its own best; the law prices the best).
// The residual of nine coefficients is quadratic in log2(m), log2(n), log2(k), bounded to
// +-kGemmResidualBound; structures switch it on only where the physical part alone was measured to
// miss more on shapes held out.
#pragma once

#include <cmath>
#include <cstdint>

#include "model/laws/gemm_parameters.h"
#include "model/laws/launches.h"
#include "model/laws/law_device.h"

namespace fulcrum {

/// |log(time / physical part)| the learned residual may reach.
inline constexpr double kGemmResidualBound = 0.2;

/// What the library's rule settles before time is counted; no fitted derivative passes through it.
struct GemmPlan {
  double block_m = 0.0;
  double block_n = 0.0;
  double split = 1.0;  ///< CTAs that share one output tile along k
  double tiles_m = 0.0;
  double tiles = 0.0;       ///< CTAs of the launch, splits included
  double iterations = 0.0;  ///< k-iterations of one CTA
  double seconds = 0.0;     ///< of the tiles, without launch floor
  bool gemv = false;
};

namespace gemm_detail {

template <class Real>
double plain(const Real& x) {
  if constexpr (requires { x.value; }) {
    return x.value;
  } else {
    return x;
  }
}

/// Rounding of non-negative values below 2^62, inline where the baseline instruction set has no
/// rounding instruction and std::ceil is a call.
inline double whole_up(double x) {
  const double t = static_cast<double>(static_cast<std::int64_t>(x));
  return t < x ? t + 1.0 : t;
}
// std::fmin and fmax are calls as well, for the sake of NaN.
inline double largest(double a, double b) { return a < b ? b : a; }
inline double least(double a, double b) { return b < a ? b : a; }
inline double whole_down(double x) { return static_cast<double>(static_cast<std::int64_t>(x)); }

template <class Real>
Real larger(const Real& a, const Real& b) {
  return plain(a) < plain(b) ? b : a;
}

/// (a^p + b^p + c^p)^(1/p) for p = 2 or 4.
template <class Real>
Real join(Real a, Real b, Real c, int order) {
  using std::sqrt;
  a = a * a;
  b = b * b;
  c = c * c;
  if (order == 2) return sqrt(a + b + c);
  return sqrt(sqrt(a * a + b * b + c * c));
}

/// Launch quantities every tile shares.
template <class Real>
struct Shared {
  double weight_bytes = 0.0;
  double input_byte = 0.0;     ///< bytes of one operand element in the tile loop
  double wave_per_tile = 0.0;  ///< 1 / SMs
  Real miss_fraction{};        ///< of the weights, fetched from DRAM
  Real activation_miss_fraction{};
  Real dram_seconds{};
  // Inverse rates, so that a menu is priced without divisions.
  Real seconds_per_tile_flop{};
  Real seconds_per_fill_byte{};
  Real seconds_per_missed_byte{};
  Real seconds_per_l2_byte{};
};

/// Share of the weights that the L2 no longer holds when the same weights come round again: none
/// while the working set fits, all once it is clearly larger (cyclic reuse defeats LRU).
template <class Real>
Real miss_fraction(const GemmLaw<Real>& law, double working_set_bytes, const LawDevice& device) {
  const double working_set = working_set_bytes / device.l2_bytes;
  if (!(working_set < 1e6)) return Real(1.0);
  const Real u = (working_set - law.l2_resident_fraction) /
                 (law.l2_resident_fraction * law.l2_transition_width);
  if (plain(u) <= 0.0) return Real(0.0);
  if (plain(u) >= 1.0) return Real(1.0);
  return u * u * (3.0 - 2.0 * u);
}

/// Same for inputs and outputs. What does not fit is evicted, the rest stays: outputs are written
/// once and do not chase their own tail as cyclic reads do (cuBLAS at k = 32..128 writes 33 MB at
/// 2.2 TB/s, above the DRAM's rate, in a 200 MB cycle).
template <class Real>
Real activation_miss_fraction(const GemmLaw<Real>& law, double working_set_bytes,
                              const LawDevice& device) {
  const Real miss = 1.0 - law.l2_resident_fraction * (device.l2_bytes / working_set_bytes);
  return plain(miss) <= 0.0 ? Real(0.0) : miss;
}

template <class Real>
Shared<Real> shared_terms(const GemmLaw<Real>& law, const GemmStructure& structure,
                          const GemmLaunch& launch, const LawDevice& device) {
  Shared<Real> s;
  const double m = launch.m, n = launch.n, k = launch.k, groups = launch.groups;
  s.input_byte = launch.weight_bits / 8.0;
  s.weight_bytes = groups * n * k * s.input_byte;
  s.wave_per_tile = 1.0 / device.num_sms;
  s.seconds_per_tile_flop = device.num_sms / (law.compute_efficiency * device.peak(launch.compute));
  const double clock = device.sm_clock_hertz;
  if (structure.limits_sm_fill) {
    s.seconds_per_fill_byte = 1.0 / (law.sm_fill_bytes_per_clock * clock);
  }
  s.miss_fraction = miss_fraction(law, launch.weight_working_set_bytes, device);
  if (structure.limits_sm_miss) {
    s.seconds_per_missed_byte = s.miss_fraction / (law.sm_miss_bytes_per_clock * clock);
  }
  s.seconds_per_l2_byte = 1.0 / (law.l2_bandwidth_ratio * device.dram_bandwidth_bytes_per_second);
  const double weight_seconds = s.weight_bytes / device.dram_bandwidth_bytes_per_second;
  const double other_bytes = groups * (m * n * launch.output_bits / 8.0 + m * k * s.input_byte);
  const double other_seconds = other_bytes / device.dram_bandwidth_bytes_per_second;
  s.activation_miss_fraction = activation_miss_fraction(
      law, largest(other_bytes, launch.activation_working_set_bytes), device);
  s.dram_seconds =
      weight_seconds * s.miss_fraction / law.dram_efficiency +
      other_seconds * (s.activation_miss_fraction / law.dram_efficiency +
                       (1.0 - s.activation_miss_fraction) / law.activation_bandwidth_ratio);
  return s;
}

/// Time from the first fetch to the last store of one plan.
template <class Real>
Real tile_seconds(const GemmLaw<Real>& law, const GemmStructure& structure,
                  const GemmLaunch& launch, const Shared<Real>& s, const GemmPlan& plan) {
  const double bm = plan.block_m, bn = plan.block_n, bk = structure.block_k;
  const double fetched_rows = structure.fetches_live_rows ? launch.m / plan.tiles_m : bm;
  const double iteration_bytes = (fetched_rows + bn) * bk * s.input_byte;

  Real iteration = 2.0 * bm * bn * bk * s.seconds_per_tile_flop + law.iteration_overhead_seconds;
  if (structure.limits_sm_fill) {
    iteration = larger(iteration, iteration_bytes * s.seconds_per_fill_byte);
  }
  if (structure.limits_sm_miss) {
    iteration = larger(iteration, bn * bk * s.input_byte * s.seconds_per_missed_byte);
  }
  Real floor = law.iteration_floor_seconds;
  if (structure.crowds) {
    // Seen on sm_120 block-FP8 only, cause unknown: slower from about one CTA a GPC to three.
    const double crowd = least(1.0, largest(0.0, (plan.tiles - 10.0) / 24.0));
    floor = floor * (1.0 + law.crowding * crowd);
  }
  iteration = larger(iteration, floor);
  if (structure.slow_when_ragged && bn > 16.0) {
    const bool ragged = (launch.m > 64.0 && std::fmod(launch.m, 128.0) != 0.0) ||
                        (launch.m > 16.0 && launch.m <= 32.0);
    // The tables show one and two row tiles (m = 96, 192); more are taken to pay like two.
    if (ragged) iteration = iteration + law.ragged_iteration_seconds * least(plan.tiles_m, 2.0);
  }
  const double full = plan.tiles * s.wave_per_tile;
  if (structure.slow_when_wide && bm > 64.0 && bn > 160.0 && full <= 1.0) {
    const bool exempt = (bn > 192.0 && bn <= 224.0) || std::fmod(launch.m, 128.0) != 0.0;
    if (!exempt) iteration = iteration * law.wide_tile_slowdown;
  }

  const double waves = whole_up(full);
  const Real paid_waves = larger(Real(1.0), full + (waves - full) * law.tail_fraction);
  const Real cta = paid_waves * (law.prologue_seconds + plan.iterations * iteration);

  Real l2 = plan.tiles * plan.iterations * iteration_bytes * s.seconds_per_l2_byte;
  if (structure.pays_overhang && launch.m < bm) {
    l2 = l2 + plan.tiles * plan.iterations * (1.0 - launch.m / bm) * law.overhang_seconds;
  }
  Real t = join(cta, l2, s.dram_seconds, structure.overlap_order);
  if (plan.split > 1.0) {
    const double partial_bytes = launch.groups * launch.m * launch.n * 4.0 * plan.split;
    t = t + law.split_floor_seconds +
        partial_bytes * s.seconds_per_l2_byte / law.split_bandwidth_ratio;
  }
  return t;
}

/// A kernel without tiles: one warp or block a column, the whole launch limited by bytes, by k or
/// by the number of columns.
template <class Real>
Real gemv_seconds(const GemmLaw<Real>& law, const GemmLaunch& launch, const LawDevice& device,
                  const Shared<Real>& s) {
  using std::sqrt;
  const Real dram = s.weight_bytes / device.dram_bandwidth_bytes_per_second * s.miss_fraction /
                    law.gemv_dram_efficiency;
  const Real l2 = s.weight_bytes / (law.gemv_l2_ratio * device.dram_bandwidth_bytes_per_second);
  const Real depth = launch.k * law.gemv_k_seconds;
  const Real columns = launch.groups * launch.n *
                       (law.gemv_column_seconds + launch.m * law.gemv_column_token_seconds);
  const Real flops = 2.0 * launch.groups * launch.m * launch.n * launch.k /
                     (law.gemv_compute_efficiency * device.peak(launch.compute));
  return sqrt(dram * dram + l2 * l2 + depth * depth + columns * columns + flops * flops);
}

/// Quadratic in the logarithms, each scaled to [-1.1, 1.1] over 1..1024 (m) and 32..65536 (n, k).
template <class Real>
Real residual(const GemmLaw<Real>& law, const GemmLaunch& launch) {
  const auto clamp = [](double v) { return least(1.1, largest(-1.1, v)); };
  const double x = clamp(std::log2(launch.m) / 5.0 - 1.0);
  const double y = clamp(std::log2(launch.n) / 5.5 - 2.0);
  const double z = clamp(std::log2(launch.k) / 5.5 - 2.0);
  const double terms[kNumGemmResidual] = {x, y, z, x * x, y * y, z * z, x * y, x * z, y * z};
  Real sum(0.0);
  for (std::size_t i = 0; i < kNumGemmResidual; ++i) sum = sum + law.residual[i] * terms[i];
  const double value = plain(sum);
  if (value > kGemmResidualBound) return Real(kGemmResidualBound);
  if (value < -kGemmResidualBound) return Real(-kGemmResidualBound);
  return sum;
}

/// Narrowest block_n that keeps the wave count of the widest allowed one: DeepGEMM's rule (fewest
/// waves, then the fullest last wave) solved for block_n. Source: deep_gemm/jit_kernels/gemm.py.
inline double fewest_waves_block_n(const GemmStructure& structure, double widest, double tiles_m,
                                   double n, double num_sms) {
  const double waves = whole_up(tiles_m * whole_up(n / widest) / num_sms);
  const double columns = largest(1.0, whole_down(waves * num_sms / tiles_m));
  const double step = structure.column_granularity;
  return largest(16.0, whole_up(n / columns / step) * step);
}

}  // namespace gemm_detail

/// The tile and split the library's rule picks. One evaluation per candidate.
inline GemmPlan gemm_plan(const GemmLaw<double>& law, const GemmStructure& structure,
                          const GemmLaunch& launch, const LawDevice& device,
                          const gemm_detail::Shared<double>& shared) {
  using gemm_detail::whole_down;
  using gemm_detail::whole_up;
  GemmPlan best;
  if (launch.m <= structure.gemv_max_m) {
    best.gemv = true;
    return best;
  }
  const double iterations = whole_up(launch.k / structure.block_k);
  double max_split = 1.0;
  if (structure.max_split > 1.0 && launch.k >= structure.split_min_k &&
      launch.m * launch.n * launch.k >= structure.split_min_work) {
    max_split = gemm_detail::least(structure.max_split,
                                   whole_down(iterations / structure.min_split_iterations));
  }
  for (std::size_t i = 0; i < structure.num_tiles; ++i) {
    const GemmTile& tile = structure.tiles[i];
    if (!(launch.m > tile.above_m && launch.m <= tile.max_m)) continue;
    if (!(launch.n > tile.above_n && launch.n <= tile.max_n)) continue;
    GemmPlan plan;
    plan.tiles_m = whole_up(launch.m / tile.block_m);
    const double rows = structure.row_granularity;
    plan.block_m = rows > 0.0 ? whole_up(launch.m / plan.tiles_m / rows) * rows : tile.block_m;
    plan.block_n = structure.column_granularity > 0.0
                       ? gemm_detail::fewest_waves_block_n(structure, tile.block_n, plan.tiles_m,
                                                           launch.n, device.num_sms)
                       : tile.block_n;
    const double whole = launch.groups * plan.tiles_m * whole_up(launch.n / plan.block_n);
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) {
        if (max_split <= 1.0 || whole * 2.0 > device.num_sms) break;
        plan.split = gemm_detail::least(whole_down(device.num_sms / whole), max_split);
      }
      plan.tiles = whole * plan.split;
      plan.iterations = pass == 0 ? iterations : whole_up(iterations / plan.split);
      plan.seconds = gemm_detail::tile_seconds(law, structure, launch, shared, plan);
      if (best.tiles == 0.0 || plan.seconds < best.seconds) best = plan;
    }
  }
  return best;
}

/// Seconds of one launch, activation quantisation included where structure.quantises_input.
/// Needs m, n, k, groups >= 1 and positive device figures.
template <class Real>
Real gemm_seconds(const GemmLaw<Real>& law, const GemmStructure& structure,
                  const GemmLaunch& launch, const LawDevice& device) {
  const gemm_detail::Shared<Real> shared =
      gemm_detail::shared_terms(law, structure, launch, device);
  GemmPlan plan;
  Real t{};
  if constexpr (requires { law.launch_floor_seconds.value; }) {
    const GemmLaw<double> numbers = law.plain();
    plan = gemm_plan(numbers, structure, launch, device,
                     gemm_detail::shared_terms(numbers, structure, launch, device));
    if (!plan.gemv) t = gemm_detail::tile_seconds(law, structure, launch, shared, plan);
  } else {
    plan = gemm_plan(law, structure, launch, device, shared);
    t = plan.seconds;
  }

  if (plan.gemv) {
    t = law.gemv_floor_seconds + gemm_detail::gemv_seconds(law, launch, device, shared);
  } else {
    // A power-capped clock: the longer the tensor cores run flat out, the lower it settles.
    const double flop_seconds =
        2.0 * launch.groups * launch.m * launch.n * launch.k / device.peak(launch.compute);
    t = t + law.launch_floor_seconds +
        law.throttle_slope * flop_seconds * flop_seconds / (flop_seconds + law.throttle_seconds);
  }
  if (structure.quantises_input) {
    const double bytes = launch.m * launch.k * (launch.activation_bits + launch.weight_bits) / 8.0;
    const double waves = gemm_detail::whole_up(launch.m / (4.0 * device.num_sms));
    const Real slowness = (1.0 - shared.activation_miss_fraction) / law.quantise_bandwidth_ratio +
                          shared.activation_miss_fraction / law.dram_efficiency;
    t = t + bytes / device.dram_bandwidth_bytes_per_second * slowness +
        launch.m * law.quantise_row_seconds + launch.k * waves * law.quantise_column_seconds;
  }
  if (structure.has_residual) {
    using std::exp;
    t = t * exp(gemm_detail::residual(law, launch));
  }
  return t;
}

}  // namespace fulcrum
