// Bytes, FLOP and messages of a launch: the only place these formulas stand (F6-F9 in
// model/README.md). Minimum traffic: each weight and KV row once per launch, L2 hits not counted.
#pragma once

#include "model/laws/launches.h"
#include "model/step_graph.h"
#include "model/units.h"

namespace fulcrum {

struct Tally {
  Bytes weights;
  Bytes kv;
  Bytes activations;
  Flop flop;
  NumberFormat unit = NumberFormat::kFp32;  ///< unit that does the FLOP
  Bytes message;                            ///< bytes a collective hands over per rank
  Bytes dram() const { return weights + kv + activations; }
};

Tally tally(const GemmLaunch& launch);
Tally tally(const MoeLaunch& launch);
Tally tally(const AttentionLaunch& launch);
Tally tally(const ContextScanLaunch& launch);
Tally tally(const MhcLaunch& launch);
Tally tally(const ElementwiseLaunch& launch);
Tally tally(const CollectiveLaunch& launch);
Tally tally(const Launch& launch);

enum class Limiter { kMemory, kCompute, kLatency, kLink, kHost };
std::string_view name_of(Limiter limiter);

/// Roofline floor of a launch at datasheet peaks, without any launch cost, and what sets it.
/// Activations count as DRAM traffic only beyond what the L2 holds.
struct Floor {
  Seconds time;
  Limiter limiter = Limiter::kMemory;
};
Floor roofline_floor(const Tally& tally, const LawDevice& device);

}  // namespace fulcrum
