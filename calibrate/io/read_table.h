// Reads aiconfigurator's per-kernel tables in CSV form.
#pragma once

#include <string>
#include <string_view>

#include "calibrate/measurement_table.h"

namespace fulcrum::calibrate::io {

/// What the file itself may not say. The name form
/// <system>__<family>__<engine>__<version>__<table>.csv and the columns device, framework, version
/// say it; these win over both.
struct TableOrigin {
  std::string device;
  std::string engine;
  std::string engine_version;
};

/// Reads and sorts rows into series; rows that do not parse are quarantined. Not yet screened.
/// Throws InputError: unreadable file, no data rows, unknown columns, unknown device.
MeasurementTable read_table(const std::string& path, const TableOrigin& origin = {});

/// Same from text; `file` names it in messages and may carry the name form.
MeasurementTable parse_table(std::string_view text, const std::string& file,
                             const TableOrigin& origin = {});

}  // namespace fulcrum::calibrate::io
