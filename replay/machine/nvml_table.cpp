#include "replay/machine/nvml_table.h"

#include <dlfcn.h>

namespace fulcrum::replay::machine {
namespace {

template <typename Function>
void resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

NvmlTable load_nvml(std::string& absence) {
  NvmlTable t;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    absence = "libnvidia-ml.so.1 cannot be loaded: no NVIDIA driver here";
    return t;
  }
  resolve(library, "nvmlInit_v2", t.init);
  resolve(library, "nvmlShutdown", t.shutdown);
  resolve(library, "nvmlErrorString", t.error_string);
  resolve(library, "nvmlSystemGetDriverVersion", t.driver_version);
  resolve(library, "nvmlSystemGetCudaDriverVersion_v2", t.cuda_version);
  resolve(library, "nvmlDeviceGetCount_v2", t.count);
  resolve(library, "nvmlDeviceGetHandleByIndex_v2", t.by_index);
  resolve(library, "nvmlDeviceGetName", t.name);
  resolve(library, "nvmlDeviceGetUUID", t.uuid);
  resolve(library, "nvmlDeviceGetPciInfo_v3", t.pci);
  resolve(library, "nvmlDeviceGetCudaComputeCapability", t.capability);
  resolve(library, "nvmlDeviceGetMemoryInfo", t.memory);
  resolve(library, "nvmlDeviceGetClockInfo", t.clock);
  resolve(library, "nvmlDeviceGetMaxClockInfo", t.max_clock);
  resolve(library, "nvmlDeviceGetApplicationsClock", t.application_clock);
  resolve(library, "nvmlDeviceGetPowerUsage", t.power);
  resolve(library, "nvmlDeviceGetEnforcedPowerLimit", t.power_limit);
  resolve(library, "nvmlDeviceGetPowerManagementDefaultLimit", t.power_limit_default);
  resolve(library, "nvmlDeviceGetPowerManagementLimitConstraints", t.power_limits);
  resolve(library, "nvmlDeviceGetTemperature", t.temperature);
  resolve(library, "nvmlDeviceGetTemperatureThreshold", t.temperature_threshold);
  resolve(library, "nvmlDeviceGetCurrentClocksEventReasons", t.clock_reasons);
  if (t.clock_reasons == nullptr) {
    resolve(library, "nvmlDeviceGetCurrentClocksThrottleReasons", t.clock_reasons);
  }
  resolve(library, "nvmlDeviceGetPersistenceMode", t.persistence);
  resolve(library, "nvmlDeviceGetMigMode", t.mig);
  resolve(library, "nvmlDeviceGetEccMode", t.ecc);
  resolve(library, "nvmlDeviceGetTotalEccErrors", t.ecc_errors);
  resolve(library, "nvmlDeviceGetComputeRunningProcesses_v3", t.processes);
  resolve(library, "nvmlDeviceGetUtilizationRates", t.utilization);
  resolve(library, "nvmlDeviceGetCurrPcieLinkGeneration", t.pcie_generation);
  resolve(library, "nvmlDeviceGetMaxPcieLinkGeneration", t.pcie_generation_max);
  resolve(library, "nvmlDeviceGetCurrPcieLinkWidth", t.pcie_lanes);
  resolve(library, "nvmlDeviceGetMaxPcieLinkWidth", t.pcie_lanes_max);
  resolve(library, "nvmlDeviceGetNvLinkState", t.nvlink_state);
  resolve(library, "nvmlDeviceGetNvLinkVersion", t.nvlink_version);
  resolve(library, "nvmlDeviceGetP2PStatus", t.peer_status);
  resolve(library, "nvmlDeviceGetTopologyCommonAncestor", t.common_ancestor);
  if (t.init == nullptr || t.shutdown == nullptr || t.count == nullptr || t.by_index == nullptr) {
    absence = "libnvidia-ml.so.1 lacks nvmlInit_v2, nvmlShutdown or the device list";
  }
  return t;
}

}  // namespace fulcrum::replay::machine
