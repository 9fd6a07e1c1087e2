// The functions of NVML that describe a machine, restated from the NVML API reference and resolved
// at run time. A null entry is a function that this driver lacks. Every call here only reads.
#pragma once

#include <cstdint>
#include <string>

namespace fulcrum::replay::machine {

using NvmlDevice = void*;

inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlInsufficientSize = 7;

struct NvmlMemory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct NvmlUtilization {  // nvmlUtilization_t, percent
  unsigned gpu, memory;
};
struct NvmlPciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

struct NvmlTable {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*pci)(NvmlDevice, NvmlPciInfo*) = nullptr;
  int (*capability)(NvmlDevice, int*, int*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*max_clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*application_clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;
  int (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  int (*power_limit_default)(NvmlDevice, unsigned*) = nullptr;
  int (*power_limits)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*temperature)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*temperature_threshold)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*clock_reasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*persistence)(NvmlDevice, unsigned*) = nullptr;
  int (*mig)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*ecc)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*ecc_errors)(NvmlDevice, unsigned, unsigned, unsigned long long*) = nullptr;
  int (*processes)(NvmlDevice, unsigned*, void*) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*pcie_generation)(NvmlDevice, unsigned*) = nullptr;
  int (*pcie_generation_max)(NvmlDevice, unsigned*) = nullptr;
  int (*pcie_lanes)(NvmlDevice, unsigned*) = nullptr;
  int (*pcie_lanes_max)(NvmlDevice, unsigned*) = nullptr;
  int (*nvlink_state)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*nvlink_version)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*peer_status)(NvmlDevice, NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*common_ancestor)(NvmlDevice, NvmlDevice, unsigned*) = nullptr;
};

/// Loads libnvidia-ml.so.1, which stays loaded. `absence` says why nothing could be loaded; "" when
/// the table can be used.
NvmlTable load_nvml(std::string& absence);

}  // namespace fulcrum::replay::machine
