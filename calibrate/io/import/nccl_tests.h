// Output of NVIDIA/nccl-tests, as printed (every version since 2.0) and as JSON (--json, 2.16 on).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "calibrate/io/import/imported_table.h"
#include "model/io/import/byte_source.h"

namespace fulcrum::calibrate::io {

/// Rows of nccl_perf: out-of-place times, or in-place where those are missing; rows with wrong
/// results are left out and noted. `operation` ("all_reduce", ...) is needed where neither the
/// text, the file's name nor the ratio of bus to algorithm bandwidth says it (all-reduce:
/// 2 (n - 1) / n; nccl-tests doc/PERFORMANCE.md). Throws InputError.
ImportedTable read_nccl_text(fulcrum::io::ByteSource& source, const std::string& operation);
ImportedTable read_nccl_json(const nlohmann::json& document, const std::string& file,
                             const std::string& operation);

}  // namespace fulcrum::calibrate::io
