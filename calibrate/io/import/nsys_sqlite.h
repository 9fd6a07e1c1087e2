// SQLite exports of Nsight Systems (nsys export --type sqlite).
#pragma once

#include <string>
#include <string_view>

#include "calibrate/trace/kernel_trace.h"

namespace fulcrum::calibrate::io {

/// Kernels, copies and memsets of CUPTI_ACTIVITY_KIND_{KERNEL,MEMCPY,MEMSET}; CUDA graphs traced as
/// a whole (CUPTI_ACTIVITY_KIND_GRAPH_TRACE, the default of nsys) as one activity each, so that
/// their time is not mistaken for idle. Tables and columns differ between versions: names come from
/// demangledName, shortName or name; device, correlation and graph node are used where present.
/// Throws InputError: no database, no GPU tables, missing columns, damaged pages.
KernelTrace read_nsys_sqlite(const std::string& path);

/// The same of a database in memory; `name` stands for the path in messages.
KernelTrace parse_nsys_sqlite(std::string_view bytes, const std::string& name);

}  // namespace fulcrum::calibrate::io
