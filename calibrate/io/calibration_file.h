// Calibration files, schema fulcrum/calibration/1 (keys: calibrate/README.md).
#pragma once

#include <string>

#include "calibrate/calibration.h"

namespace fulcrum::calibrate::io {

/// Deterministic text: same calibration, same bytes. Numbers keep 9 significant digits.
std::string calibration_text(const Calibration& calibration);

/// Throws std::runtime_error if the file cannot be written.
void write_calibration(const Calibration& calibration, const std::string& path);

/// Strict: unknown keys, missing keys, wrong types and values out of bounds are gathered into one
/// InputError.
Calibration read_calibration(const std::string& path);
Calibration parse_calibration(const std::string& text, const std::string& file);

}  // namespace fulcrum::calibrate::io
