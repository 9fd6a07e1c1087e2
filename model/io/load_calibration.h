// Reads what pricing needs of a calibration file (schema fulcrum/calibration/1, written by the
// calibrator): parameters and residual spread per fitted series.
#pragma once

#include <map>
#include <memory>
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

/// The shipped calibration for this GPU, or for one of the same compute capability; null if
/// neither exists.
std::shared_ptr<const Calibration> find_calibration(const Hardware& hardware);

/// Calibrations read so far, by hardware name: for callers that resolve many variants of a
/// scenario. Not for use by two threads at once.
using CalibrationCache = std::map<std::string, std::shared_ptr<const Calibration>, std::less<>>;

}  // namespace fulcrum::io
