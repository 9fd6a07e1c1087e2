// dsv4_{csa,hca}_generation_module_perf: one compressed-attention layer in decode.
#pragma once

#include "calibrate/family.h"
#include "model/laws/attention_module.h"

namespace fulcrum::calibrate {

/// The layer a row runs. `key.dtype` is the projections' format; the fallback build pads rows and
/// keys to the model's maximum context, which the tables' collector leaves at its default.
AttentionModuleLaunch attention_module_launch(const SeriesKey& key, const AttentionRow& row);

/// The layers of the row-loop build: SGLang on SM120 in the tables.
const Family& fallback_attention_family();
/// The layers of the split-K build: SGLang on SM90 in the tables.
const Family& split_k_attention_family();

}  // namespace fulcrum::calibrate
