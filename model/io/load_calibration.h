// Reads what pricing needs of a calibration file (schema fulcrum/calibration/1, written by the
// calibrator): parameters and residual spread per fitted series.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/hardware.h"

namespace fulcrum::io {

struct CalibratedParameter {
  double value = 0.0;
  double standard_error = 0.0;
};

struct CalibratedSeries {
  std::string law_family;
  std::map<std::string, CalibratedParameter, std::less<>> parameters;
  double log_sigma = 0.0;  ///< robust spread of log(measured / law) on held-out rows
  std::string source;
};

struct Calibration {
  std::string file;
  std::string hardware;  ///< name of the hardware file it was measured on
  std::map<std::string, CalibratedSeries, std::less<>> series;
};

/// Throws InputError on a malformed file.
Calibration load_calibration(const std::string& path);

/// The shipped calibration for this GPU, or for one of the same compute capability; nothing if
/// neither exists.
std::optional<Calibration> find_calibration(const Hardware& hardware);

}  // namespace fulcrum::io
