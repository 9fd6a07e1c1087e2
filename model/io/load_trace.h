// Reads request traces, one JSON object a line.
#pragma once

#include <string>
#include <vector>

#include "model/simulate.h"

namespace fulcrum::io {

/// Mooncake lines {"timestamp": ms, "input_length":, "output_length":, ..} and benchmark-client
/// lines
/// {"arrival_seconds" or "arrival_time":, "input_len" or "prompt_len":, "output_len":, ..}; other
/// keys are ignored. Sorted by arrival, which is shifted to start at zero. Throws InputError naming
/// the line.
std::vector<TraceRequest> load_trace(const std::string& path);

}  // namespace fulcrum::io
