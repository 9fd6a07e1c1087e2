// Clocks, power, temperature and throttle reasons through NVML, loaded at run time: the harness
// must also run where libnvidia-ml is missing, and say so. Reads only; never changes a setting.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fulcrum::replay {

// What NVML could tell at one moment; unknown values are absent.
struct DeviceState {
  std::optional<double> sm_clock_hertz;
  std::optional<double> memory_clock_hertz;
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<std::uint64_t> throttle_reasons;  // NVML clocks-event-reasons bit mask.
};

// Bits of nvmlClocksEventReasons that mean "slower than the card could be": software power cap 0x4,
// hardware slowdown 0x8, software thermal 0x20, hardware thermal 0x40, hardware power brake 0x80.
// Idle (0x1) and application clocks (0x2) are settings, not throttling.
inline constexpr std::uint64_t kThrottleMask = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

class Nvml {
 public:
  // `pci_bus_id` as cudaDeviceGetPCIBusId writes it. Never throws: what is missing is in absence().
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Why nothing can be read; empty when NVML works.
  const std::string& absence() const { return absence_; }
  DeviceState read() const;
  std::optional<std::string> driver_version() const;
  std::optional<double> power_limit_watts() const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
  void* library_ = nullptr;
  void* device_ = nullptr;
  std::string absence_;
};

}  // namespace fulcrum::replay
