// Chrome traces as the torch profiler (Kineto) writes them, read event by event.
#pragma once

#include "calibrate/trace/kernel_trace.h"
#include "model/io/import/byte_source.h"

namespace fulcrum::calibrate::io {

/// GPU activities of {"traceEvents": [..]} or of a bare array of events: categories kernel,
/// gpu_memcpy and gpu_memset (Kernel, Memcpy, Memset before PyTorch 1.12). Times are microseconds.
/// Memory does not grow with host events. Throws InputError: not JSON, cut off, no GPU activity.
KernelTrace read_chrome_trace(fulcrum::io::ByteSource& source);

}  // namespace fulcrum::calibrate::io
