// Every cost law a kernel set may name, from one table in law_table.cpp.
#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "model/laws/collective.h"
#include "model/laws/collective_path.h"
#include "model/laws/context_scan.h"
#include "model/laws/elementwise.h"
#include "model/laws/gemm.h"
#include "model/laws/gemm_structures.h"
#include "model/laws/law_device.h"
#include "model/laws/mhc.h"
#include "model/laws/moe.h"
#include "model/laws/moe_kernels.h"
#include "model/laws/parameter_info.h"
#include "model/laws/roofline.h"
#include "model/laws/row_loop_attention.h"
#include "model/laws/slot_gemv.h"
#include "model/laws/split_k_attention.h"
#include "model/op_table.h"
#include "model/step_graph.h"

namespace fulcrum {

/// An op that another kernel does in passing; costs nothing of its own.
struct FusedLaw {};

/// A GEMM law under the rule of the library that launches it.
struct GemmCost {
  GemmLaw<double> law;
  const GemmStructure* structure = nullptr;
};

/// The row-loop kernel with what the engine launches around it for every token: padding of the
/// queries, copies, merging of window and compressed part (fitted together with the module).
struct RowLoopCost {
  RowLoopAttentionLaw<double> law;
  double token_seconds = 0.0;
};

/// A grouped MoE law under the tiling of one kernel family.
struct MoeCost {
  MoeLaw<double> law;
  const MoeKernelTraits* traits = nullptr;
};

/// A collective law under the algorithms one library can take.
struct CollectiveCost {
  CollectiveLaw<double> law;
  CollectiveStructure structure;
};

/// One algorithm and protocol, or a peer kernel.
struct CollectivePathCost {
  CollectivePathLaw<double> law;
  CollectivePath path = CollectivePath::kRing;
};

using Law = std::variant<FusedLaw, RooflineLaw<double>, GemmCost, RowLoopCost,
                         SplitKAttentionLaw<double>, DenseScanLaw<double>, SplitScanLaw<double>,
                         MoeCost, ElementwiseLaw<double>, MhcLaw<double>, CollectiveCost,
                         CollectivePathCost, SlotGemvLaw<double>, TableCost>;

struct LawInfo {
  std::string_view name;
  std::span<const ParameterInfo> parameters;
  /// Builds the law from its parameters, in table order and base units.
  Law (*make)(std::span<const double> parameters);
  /// Whether the law can price launches of this alternative of Launch.
  bool (*accepts)(const Launch& launch);
};

std::span<const LawInfo> law_table();
/// The entry of that name, or nullptr.
const LawInfo* find_law(std::string_view name);

/// Time of one execution in seconds; finite and non-negative for positive shapes.
double law_seconds(const Law& law, const Launch& launch, const LawDevice& device);

}  // namespace fulcrum
