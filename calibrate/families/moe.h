// moe_perf: routed experts, every kernel source of the public tables.
#pragma once

#include "calibrate/family.h"
#include "model/laws/moe.h"

namespace fulcrum::calibrate {

/// Structure of the kernel that a row of the series runs, from the kernel's source code.
MoeKernelTraits moe_kernel_traits(const SeriesKey& key, const MoeRow& row);

/// The launch of a row on its rank, its routed work and how far apart its weights are reused: the
/// tables repeat one routing (balanced) or five (power law) without flushing L2.
MoeWork moe_work(const SeriesKey& key, const MoeRow& row);

const Family& moe_family();

}  // namespace fulcrum::calibrate
