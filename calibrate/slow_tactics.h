// Launches that took longer than launches with more work: an autotuner's failure, not the kernel.
#pragma once

#include <vector>

#include "calibrate/record.h"

namespace fulcrum::calibrate {

/// True for series whose kernel an autotuner picks per shape among tactics.
bool is_autotuned(const SeriesKey& key);

/// For each record of a MoE series its time over the least time of any record of the same routing
/// with at least as much of everything: tokens, routed pairs and experts of the rank, both widths.
/// 1 where no such record is faster by `least_ratio`. Needs no law: more work on the same kernel
/// takes no less time.
std::vector<double> slowdown_against_more_work(const Series& series, double least_ratio);

}  // namespace fulcrum::calibrate
