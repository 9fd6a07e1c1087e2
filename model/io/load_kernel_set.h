// Reads a kernel set (schema fulcrum/kernel_set/1) and binds it to one GPU.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/hardware.h"
#include "model/io/load_calibration.h"
#include "model/kernel_set.h"

namespace fulcrum::io {

/// What a scenario changes in a kernel set.
struct KernelSetChanges {
  std::string file;        ///< where the changes stand, for messages
  nlohmann::json kernels;  ///< slot or op -> "SET", "SET#VARIANT", or a binding
  nlohmann::json traits;   ///< partial traits
};

/// Loads data/kernels/<name>.json (or a path), applies the changes, and resolves every op's law and
/// parameters for the hardware: inline parameters first, then the calibration of that GPU, then one
/// of a GPU of the same compute capability moved through the hardware files (said in `warnings`).
/// `cache`, where given, keeps the calibrations read.
/// Throws InputError: unknown set, law, slot or parameter, or no calibration for this GPU.
KernelSet load_kernel_set(const std::string& name, const std::string& file,
                          const std::string& pointer, const Hardware& hardware,
                          const KernelSetChanges& changes, std::vector<std::string>& warnings,
                          CalibrationCache* cache = nullptr);

}  // namespace fulcrum::io
