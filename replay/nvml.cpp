#include "replay/nvml.h"

#include <dlfcn.h>

namespace fulcrum::replay {
namespace {

// The few declarations used, restated from the NVML API reference so that nvml.h is not needed to
// build.
using Return = int;
constexpr Return kSuccess = 0;
constexpr unsigned kClockSm = 1;      // NVML_CLOCK_SM
constexpr unsigned kClockMemory = 2;  // NVML_CLOCK_MEM
constexpr unsigned kTemperatureGpu = 0;

template <typename Function>
bool resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Nvml::Functions {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*by_pci)(const char*, void**) = nullptr;
  Return (*clock)(void*, unsigned, unsigned*) = nullptr;
  Return (*power)(void*, unsigned*) = nullptr;
  Return (*power_limit)(void*, unsigned*) = nullptr;
  Return (*temperature)(void*, unsigned, unsigned*) = nullptr;
  Return (*reasons)(void*, unsigned long long*) = nullptr;
  Return (*driver)(char*, unsigned) = nullptr;
};

Nvml::Nvml(const std::string& pci_bus_id) : functions_(std::make_unique<Functions>()) {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    absence_ = "libnvidia-ml.so.1 cannot be loaded";
    return;
  }
  Functions& f = *functions_;
  if (!resolve(library_, "nvmlInit_v2", f.init) || !resolve(library_, "nvmlShutdown", f.shutdown) ||
      !resolve(library_, "nvmlDeviceGetHandleByPciBusId_v2", f.by_pci)) {
    absence_ = "libnvidia-ml.so.1 lacks nvmlInit_v2 or nvmlDeviceGetHandleByPciBusId_v2";
    return;
  }
  resolve(library_, "nvmlDeviceGetClockInfo", f.clock);
  resolve(library_, "nvmlDeviceGetPowerUsage", f.power);
  resolve(library_, "nvmlDeviceGetEnforcedPowerLimit", f.power_limit);
  resolve(library_, "nvmlDeviceGetTemperature", f.temperature);
  if (!resolve(library_, "nvmlDeviceGetCurrentClocksEventReasons", f.reasons)) {
    resolve(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", f.reasons);
  }
  resolve(library_, "nvmlSystemGetDriverVersion", f.driver);
  if (const Return code = f.init(); code != kSuccess) {
    f.shutdown = nullptr;
    absence_ = "nvmlInit_v2 failed with code " + std::to_string(code);
    return;
  }
  if (const Return code = f.by_pci(pci_bus_id.c_str(), &device_); code != kSuccess) {
    device_ = nullptr;
    absence_ = "NVML has no device " + pci_bus_id + " (code " + std::to_string(code) + ")";
  }
}

Nvml::~Nvml() {
  if (functions_->shutdown != nullptr && library_ != nullptr) functions_->shutdown();
  // The library stays loaded: unloading a driver library while the context lives is not safe.
}

DeviceState Nvml::read() const {
  DeviceState state;
  if (device_ == nullptr) return state;
  const Functions& f = *functions_;
  unsigned value = 0;
  if (f.clock != nullptr && f.clock(device_, kClockSm, &value) == kSuccess) {
    state.sm_clock_hertz = 1e6 * value;
  }
  if (f.clock != nullptr && f.clock(device_, kClockMemory, &value) == kSuccess) {
    state.memory_clock_hertz = 1e6 * value;
  }
  if (f.power != nullptr && f.power(device_, &value) == kSuccess) state.power_watts = 1e-3 * value;
  if (f.temperature != nullptr && f.temperature(device_, kTemperatureGpu, &value) == kSuccess) {
    state.temperature_celsius = value;
  }
  unsigned long long reasons = 0;
  if (f.reasons != nullptr && f.reasons(device_, &reasons) == kSuccess) {
    state.throttle_reasons = reasons;
  }
  return state;
}

std::optional<std::string> Nvml::driver_version() const {
  char text[96] = {};
  if (device_ == nullptr || functions_->driver == nullptr ||
      functions_->driver(text, sizeof text) != kSuccess) {
    return std::nullopt;
  }
  return std::string(text);
}

std::optional<double> Nvml::power_limit_watts() const {
  unsigned value = 0;
  if (device_ == nullptr || functions_->power_limit == nullptr ||
      functions_->power_limit(device_, &value) != kSuccess) {
    return std::nullopt;
  }
  return 1e-3 * value;
}

}  // namespace fulcrum::replay
