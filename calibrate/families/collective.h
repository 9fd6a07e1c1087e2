// nccl_perf and custom_allreduce_perf tables: collectives among the GPUs of one host.
#pragma once

#include "calibrate/family.h"
#include "model/laws/collective.h"

namespace fulcrum::calibrate {

const Family& collective_family();

/// Algorithms the library of a series can take on that device.
CollectiveStructure collective_structure_of(const SeriesKey& key);

}  // namespace fulcrum::calibrate
