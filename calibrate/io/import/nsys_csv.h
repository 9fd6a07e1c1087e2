// CSV reports of `nsys stats --format csv`.
#pragma once

#include <vector>

#include "calibrate/trace/kernel_trace.h"
#include "calibrate/trace/trace_rules.h"
#include "model/io/import/byte_source.h"

namespace fulcrum::calibrate::io {

/// What a report held: totals per kernel (cuda_gpu_kern_sum, gpukernsum) or every activity
/// (cuda_gpu_trace, gputrace).
struct NsysCsv {
  std::vector<KernelTotal> totals;
  KernelTrace trace;
};

/// Finds the header behind the lines nsys prints before it; units are those in the header ("(ns)",
/// "(us)", ..). Throws InputError: no known report, a row that does not parse.
NsysCsv read_nsys_csv(fulcrum::io::ByteSource& source);

}  // namespace fulcrum::calibrate::io
