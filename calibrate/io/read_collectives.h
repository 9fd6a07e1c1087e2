// Reads what `fulcrum replay collectives` measured (schema fulcrum/collectives/1).
#pragma once

#include <string>
#include <string_view>

#include "calibrate/io/read_table.h"

namespace fulcrum::calibrate::io {

/// True if the file's first line says that schema.
bool is_collectives_file(const std::string& path);

/// The graph launches of every setting with a protocol of its own and channels left to NCCL, in
/// series as collective_source() names them; lines that are noisy, throttled or failed are set
/// aside with their reason. `origin.device` names the hardware file; else the GPU's name in the
/// session does. Throws InputError: no such file, a damaged line, an unknown GPU, nothing to fit.
MeasurementTable read_collectives(const std::string& path, const TableOrigin& origin = {});
MeasurementTable parse_collectives(std::string_view text, const std::string& file,
                                   const TableOrigin& origin = {});

}  // namespace fulcrum::calibrate::io
