// Which described GPU a card in a machine is.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/hardware.h"

namespace fulcrum {

/// As a driver reports it.
struct DeviceIdentity {
  std::string name{};                ///< "NVIDIA H200"
  std::string compute_capability{};  ///< "9.0"
  std::optional<double> memory_mib{};
};

/// Index of the description with this compute capability and memory size whose label shares most
/// words with the name; nothing where none fits. Never a "similar" card: another memory size or
/// capability is another GPU.
std::optional<std::size_t> match_hardware(const DeviceIdentity& device,
                                          std::span<const Hardware> described);

}  // namespace fulcrum
