#include "model/tally.h"

#include <algorithm>

#include "model/laws/routing.h"

namespace fulcrum {
namespace {

constexpr double kBitsPerByte = 8.0;
constexpr double kFlopPerMac = 2.0;

}  // namespace

Tally tally(const GemmLaunch& g) {
  Tally t;
  t.weights = Bytes(g.groups * g.n * g.k * g.weight_bits / kBitsPerByte);
  t.activations =
      Bytes(g.groups * g.m * (g.k * g.activation_bits + g.n * g.output_bits) / kBitsPerByte);
  t.flop = Flop(kFlopPerMac * g.groups * g.m * g.n * g.k);
  t.unit = g.compute;
  return t;
}

Tally tally(const MoeLaunch& e) {
  const double matrices = e.gated ? 3.0 : 2.0;
  const double slots = e.tokens * e.top_k * e.local_experts / e.num_experts;
  Tally t;
  t.weights = Bytes(expected_distinct_experts(e) * matrices * e.inter * e.hidden * e.weight_bits /
                    kBitsPerByte);
  // Token in and out of every slot, and the activated intermediate written and read once.
  t.activations =
      Bytes(slots * (2.0 * e.hidden + 2.0 * e.inter) * e.activation_bits / kBitsPerByte);
  t.flop = Flop(kFlopPerMac * slots * matrices * e.inter * e.hidden);
  t.unit = e.compute;
  return t;
}

Tally tally(const AttentionLaunch& a) {
  constexpr double kBf16Bytes = 2.0;
  const double requests = a.tokens / a.tokens_per_request;
  Tally t;
  // Rows of a request are shared by its heads and by its query tokens' windows.
  t.kv = Bytes(requests * (a.window_rows + a.tokens_per_request - 1.0 + a.selected_rows) *
               a.row_bytes);
  t.activations = Bytes(2.0 * a.tokens * a.heads * a.head_dim * kBf16Bytes);
  t.flop = Flop(2.0 * kFlopPerMac * a.tokens * a.heads * (a.window_rows + a.selected_rows) *
                a.head_dim);  // QK^T and PV
  t.unit = NumberFormat::kBf16;
  return t;
}

Tally tally(const ContextScanLaunch& s) {
  constexpr double kFp32Bytes = 4.0;
  const double requests = s.tokens / s.tokens_per_request;
  Tally t;
  t.kv = Bytes(requests * s.keys * s.key_bytes);
  t.activations = Bytes(s.tokens * (s.heads * (s.dim + kFp32Bytes) + s.keys * kFp32Bytes));
  t.flop = Flop(kFlopPerMac * s.tokens * s.keys * s.heads * s.dim);
  t.unit = NumberFormat::kFp8;
  return t;
}

Tally tally(const MhcLaunch& h) {
  constexpr double kBf16Bytes = 2.0;
  constexpr double kFp32Bytes = 4.0;
  const double width = h.streams * h.hidden;
  const double mix_rows = 2.0 * h.streams + h.streams * h.streams;
  Tally t;
  t.weights = Bytes(mix_rows * width * kFp32Bytes);
  t.activations = Bytes(h.tokens * (width + h.hidden) * kBf16Bytes);
  t.flop = Flop(h.tokens * (kFlopPerMac * mix_rows * width + 2.0 * kFlopPerMac * width));
  t.unit = NumberFormat::kTf32;
  return t;
}

Tally tally(const ElementwiseLaunch& e) {
  Tally t;
  t.activations = Bytes(e.tokens * e.bytes_per_token + e.fixed_bytes);
  return t;
}

Tally tally(const CollectiveLaunch& c) {
  Tally t;
  if (c.ranks <= 1.0) return t;
  t.message = Bytes(c.bytes);
  return t;
}

Tally tally(const Launch& launch) {
  return std::visit([](const auto& shape) { return tally(shape); }, launch);
}

std::string_view name_of(Limiter limiter) {
  constexpr std::string_view kNames[] = {"memory", "compute", "latency", "link", "host"};
  return kNames[static_cast<int>(limiter)];
}

Floor roofline_floor(const Tally& tally, const LawDevice& device) {
  // Activations were just written: what fits the L2 need not cross DRAM.
  const Bytes spilled = std::max(Bytes(0.0), tally.activations - Bytes(device.l2_bytes));
  const Seconds memory =
      (tally.weights + tally.kv + spilled) / BytesPerSecond(device.dram_bandwidth_bytes_per_second);
  const Seconds compute = tally.flop / FlopPerSecond(device.peak(tally.unit));
  // Every rank must receive at least the message once over its link.
  const Seconds link = device.link_bandwidth_bytes_per_second > 0.0
                           ? tally.message / BytesPerSecond(device.link_bandwidth_bytes_per_second)
                           : Seconds(0.0);
  Floor floor{memory, Limiter::kMemory};
  if (compute > floor.time) floor = {compute, Limiter::kCompute};
  if (link > floor.time) floor = {link, Limiter::kLink};
  return floor;
}

}  // namespace fulcrum
