// gemm_perf tables: dense GEMMs of aiconfigurator's collectors.
#pragma once

#include "calibrate/family.h"
#include "model/laws/gemm_parameters.h"

namespace fulcrum::calibrate {

const Family& gemm_family();

/// The structure that stands for the kernel of a series; null if its library or format is unknown.
const GemmStructure* gemm_structure_of(const SeriesKey& key);

/// The launch a row was timed as, the collector's cycling through weight copies included.
GemmLaunch gemm_launch(const SeriesKey& key, const LawDevice& device, const GemmRow& row);

}  // namespace fulcrum::calibrate
