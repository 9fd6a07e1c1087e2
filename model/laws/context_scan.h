// Indexer logits over the compressed keys, and the top-k that follows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "model/laws/launches.h"
#include "model/laws/law_math.h"
#include "model/laws/parameter_info.h"

namespace fulcrum {

// ---- dense scan -------------------------------------------------------------------------------
// Torch fallback (SGLang June 2026 on SM120, `fp8_paged_mqa_logits_torch_sm120`): a chain of whole
// tensor operations over the configured maximum context. Every key of every token crosses DRAM
// several times: gathered row, dequantised row, one logit per head, ReLU, weighted sum.
//   t = t0 + tokens x padded_keys x bytes_per_key / B x (1 - saving x resident)
// resident: the per-head logits (4 bytes x heads per key) of the launch stay in L2.
// Leaves out: compute; the time of one small launch after another at few keys.

template <class Real>
struct DenseScanLaw {
  Real launch_floor_seconds{};
  Real bytes_per_key{};
  Real resident_saving{};

  static DenseScanLaw from(std::span<const Real, 3> p) { return {p[0], p[1], p[2]}; }
};

inline constexpr std::array<ParameterInfo, 3> kDenseScanParameters{{
    {"launch_floor_seconds", "s", 1e-7, 5e-4, 3e-5, Transfer::kTime},
    {"bytes_per_key", "B", 200.0, 5e4, 3600.0, Transfer::kDimensionless},
    {"resident_saving", "1", 1e-3, 0.9, 0.17, Transfer::kDimensionless},
}};

template <class Real>
Real dense_scan_seconds(const DenseScanLaw<Real>& law, const ContextScanLaunch& launch,
                        const LawDevice& device) {
  const double pairs = launch.tokens * launch.padded_keys;
  const double resident = resident_share(pairs * launch.heads * 4.0, device.l2_bytes);
  return law.launch_floor_seconds + pairs / device.dram_bandwidth_bytes_per_second *
                                        law.bytes_per_key * (1.0 - resident * law.resident_saving);
}

// ---- split scan -------------------------------------------------------------------------------
// DeepGEMM's paged MQA logits: units of 256 keys of one token are dealt to the SMs.
//   units = tokens x mean ceil(keys / 256)
//   t = t0 + [ceil](units / SMs) x cycles_per_unit (1 + spread log2 u) / clock
//       + tokens / SMs x cycles_per_token / clock + u0 log2 u,   u = units per token
// The logarithms stand for a token whose units lie on several SMs: its keys are no longer shared in
// time between tokens, and the schedule is searched. The count is rounded up to whole rounds below
// 20 rounds; above, the scheduler's balance makes it smooth.
// Leaves out: DRAM rate (one request's keys fit L2), write-back of the logits, launches whose
// tokens have fewer than one unit each (prefill without context: 25 % low).

inline constexpr double kKeysPerUnit = 256.0;

template <class Real>
struct SplitScanLaw {
  Real launch_floor_seconds{};
  Real cycles_per_unit{};
  Real cycles_per_token{};
  Real doubling_seconds{};
  Real doubling_slowdown{};

  static SplitScanLaw from(std::span<const Real, 5> p) { return {p[0], p[1], p[2], p[3], p[4]}; }
};

/// Start values: fit to the H200 table of aiconfigurator.
inline constexpr std::array<ParameterInfo, 5> kSplitScanParameters{{
    {"launch_floor_seconds", "s", 5e-7, 1e-4, 2.7e-6, Transfer::kTime},
    {"cycles_per_unit", "1", 50.0, 2e4, 1020.0, Transfer::kDimensionless},
    {"cycles_per_token", "1", 1.0, 2e4, 800.0, Transfer::kDimensionless},
    {"doubling_seconds", "s", 1e-9, 2e-6, 1.8e-7, Transfer::kTime},
    {"doubling_slowdown", "1", 1e-4, 0.2, 0.04, Transfer::kDimensionless},
}};

/// Mean of ceil(x / step) over x uniform in [low, high]; ceil(high / step) if they are equal.
inline double mean_ceil(double low, double high, double step) {
  const auto integral = [step](double x) {
    const double whole = std::floor(x / step);
    return step * whole * (whole + 1.0) / 2.0 + (x - step * whole) * (whole + 1.0);
  };
  if (high - low < 1e-9 * step) return std::ceil(high / step);
  return (integral(high) - integral(low)) / (high - low);
}

/// `launch.keys` are those of a request's last token; earlier tokens of the request see fewer,
/// 1 / `compress_ratio` per token.
template <class Real>
Real split_scan_seconds(const SplitScanLaw<Real>& law, const ContextScanLaunch& launch,
                        double compress_ratio, const LawDevice& device) {
  using std::log2;
  const double last = std::max(1.0, launch.keys);
  const double first =
      std::min(last - 1.0 / compress_ratio,
               std::max(0.0, launch.keys - launch.tokens_per_request / compress_ratio));
  const double units_per_token = mean_ceil(std::max(0.0, first), last, kKeysPerUnit);
  const double rounds = launch.tokens * units_per_token / device.num_sms;
  const double whole_rounds = rounds < 20.0 ? std::ceil(rounds - 1e-9) : rounds;
  const double doublings = std::log2(units_per_token);
  const double tokens_per_sm = launch.tokens / device.num_sms;
  return law.launch_floor_seconds +
         whole_rounds / device.sm_clock_hertz * law.cycles_per_unit *
             (1.0 + doublings * law.doubling_slowdown) +
         tokens_per_sm / device.sm_clock_hertz * law.cycles_per_token +
         doublings * law.doubling_seconds;
}

// ---- top-k ------------------------------------------------------------------------------------
// Radix selection, one CTA per token: nothing to do up to k keys; above, a full selection once k
// more keys than 512 beyond are there. Between, the tables show a straight ramp (768 keys cost
// half of 1024 with k = 512; 1536 keys cost all with k = 1024).
//   t = ceil(tokens / SMs) x selection_seconds x clamp((keys - k) / 512, 0, 1)
// Leaves out: growth of the scan with keys, which the scan law carries.

inline constexpr double kTopKRampKeys = 512.0;

template <class Real>
Real top_k_seconds(const Real& selection_seconds, double tokens, double keys, double top_k,
                   const LawDevice& device) {
  const double share = std::clamp((keys - top_k) / kTopKRampKeys, 0.0, 1.0);
  return selection_seconds * (share * std::ceil(tokens / device.num_sms));
}

}  // namespace fulcrum
