#include <iterator>

#include "replay/machine/read_machine.h"

namespace fulcrum::replay::machine {
namespace {

// Enumerators of nvml.h.
constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kTemperatureGpu = 0;
constexpr unsigned kThresholdSlowdown = 1;
constexpr unsigned kEccUncorrected = 1;
constexpr unsigned kEccSinceDriverLoad = 0;
constexpr unsigned kMaxNvlinks = 18;  // NVML_NVLINK_MAX_LINKS
enum PeerCapability : unsigned { kRead = 0, kWrite = 1, kNvlink = 2, kAtomics = 3 };

template <typename Function, typename... Arguments>
bool ok(Function function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == kNvmlSuccess;
}

constexpr double kHertzPerMegahertz = 1e6;
constexpr double kWattsPerMilliwatt = 1e-3;

std::optional<double> clock(int (*function)(NvmlDevice, unsigned, unsigned*), NvmlDevice device,
                            unsigned which) {
  unsigned megahertz = 0;
  if (!ok(function, device, which, &megahertz)) return std::nullopt;
  return kHertzPerMegahertz * megahertz;
}

std::optional<unsigned> number(int (*function)(NvmlDevice, unsigned*), NvmlDevice device) {
  unsigned value = 0;
  if (!ok(function, device, &value)) return std::nullopt;
  return value;
}

std::optional<double> watts(int (*function)(NvmlDevice, unsigned*), NvmlDevice device) {
  const auto milliwatts = number(function, device);
  if (!milliwatts) return std::nullopt;
  return kWattsPerMilliwatt * *milliwatts;
}

std::optional<int> whole(const std::optional<unsigned>& value) {
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<bool> mode(int (*function)(NvmlDevice, unsigned*, unsigned*), NvmlDevice device) {
  unsigned current = 0;
  unsigned pending = 0;
  if (!ok(function, device, &current, &pending)) return std::nullopt;
  return current != 0;
}

std::string text(int (*function)(NvmlDevice, char*, unsigned), NvmlDevice device) {
  char buffer[96] = {};
  return ok(function, device, buffer, static_cast<unsigned>(sizeof buffer)) ? buffer : "";
}

std::optional<int> num_processes(const NvmlTable& nvml, NvmlDevice device) {
  if (nvml.processes == nullptr) return std::nullopt;
  // Asked for none, NVML tells how many there are.
  unsigned count = 0;
  const int code = nvml.processes(device, &count, nullptr);
  if (code != kNvmlSuccess && code != kNvmlInsufficientSize) return std::nullopt;
  return static_cast<int>(count);
}

/// Names of nvmlNvlinkVersion_t.
std::optional<std::string> nvlink_name(unsigned version) {
  constexpr const char* kNames[] = {nullptr, "1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0"};
  if (version == 0 || version >= std::size(kNames)) return std::nullopt;
  return kNames[version];
}

void read_links(const NvmlTable& nvml, NvmlDevice device, GpuFacts& gpu) {
  for (unsigned link = 0; link < kMaxNvlinks; ++link) {
    unsigned active = 0;
    if (!ok(nvml.nvlink_state, device, link, &active)) continue;
    ++(active != 0 ? gpu.nvlinks_active : gpu.nvlinks_inactive);
    unsigned version = 0;
    if (active != 0 && ok(nvml.nvlink_version, device, link, &version)) {
      gpu.nvlink_version = nvlink_name(version);
    }
  }
  gpu.pcie_generation = whole(number(nvml.pcie_generation, device));
  gpu.pcie_generation_max = whole(number(nvml.pcie_generation_max, device));
  gpu.pcie_lanes = whole(number(nvml.pcie_lanes, device));
  gpu.pcie_lanes_max = whole(number(nvml.pcie_lanes_max, device));
}

void read_state(const NvmlTable& nvml, NvmlDevice device, GpuFacts& gpu) {
  gpu.sm_clock_hertz = clock(nvml.clock, device, kClockSm);
  gpu.sm_clock_max_hertz = clock(nvml.max_clock, device, kClockSm);
  gpu.sm_clock_application_hertz = clock(nvml.application_clock, device, kClockSm);
  gpu.memory_clock_hertz = clock(nvml.clock, device, kClockMemory);
  gpu.memory_clock_max_hertz = clock(nvml.max_clock, device, kClockMemory);
  gpu.power_watts = watts(nvml.power, device);
  gpu.power_limit_watts = watts(nvml.power_limit, device);
  gpu.power_limit_default_watts = watts(nvml.power_limit_default, device);
  unsigned lowest = 0;
  unsigned highest = 0;
  if (ok(nvml.power_limits, device, &lowest, &highest)) {
    gpu.power_limit_max_watts = kWattsPerMilliwatt * highest;
  }
  unsigned celsius = 0;
  if (ok(nvml.temperature, device, kTemperatureGpu, &celsius)) gpu.temperature_celsius = celsius;
  if (ok(nvml.temperature_threshold, device, kThresholdSlowdown, &celsius) && celsius > 0) {
    gpu.slowdown_temperature_celsius = celsius;
  }
  unsigned long long reasons = 0;
  if (ok(nvml.clock_reasons, device, &reasons)) gpu.throttle_reasons = reasons;
  if (const auto on = number(nvml.persistence, device)) gpu.persistence_mode = *on != 0;
  gpu.mig_mode = mode(nvml.mig, device);
  gpu.ecc_mode = mode(nvml.ecc, device);
  unsigned long long errors = 0;
  if (ok(nvml.ecc_errors, device, kEccUncorrected, kEccSinceDriverLoad, &errors)) {
    gpu.ecc_uncorrected_errors = errors;
  }
  gpu.compute_processes = num_processes(nvml, device);
  NvmlUtilization utilization{};
  if (ok(nvml.utilization, device, &utilization)) {
    gpu.utilization_fraction = 0.01 * utilization.gpu;
  }
}

GpuFacts read_gpu(const NvmlTable& nvml, NvmlDevice device, int index) {
  GpuFacts gpu;
  gpu.index = index;
  gpu.name = text(nvml.name, device);
  gpu.uuid = text(nvml.uuid, device);
  NvmlPciInfo pci{};
  if (ok(nvml.pci, device, &pci)) gpu.pci_bus_id = pci.bus_id;
  int major = 0;
  int minor = 0;
  if (ok(nvml.capability, device, &major, &minor)) gpu.compute_capability = 10 * major + minor;
  NvmlMemory memory{};
  if (ok(nvml.memory, device, &memory)) {
    gpu.memory_bytes = static_cast<double>(memory.total);
    gpu.memory_used_bytes = static_cast<double>(memory.used);
  }
  read_state(nvml, device, gpu);
  read_links(nvml, device, gpu);
  return gpu;
}

std::optional<bool> peer(const NvmlTable& nvml, NvmlDevice from, NvmlDevice to, unsigned what) {
  unsigned status = 0;  // nvmlGpuP2PStatus_t: 0 is OK, all else a reason against it
  if (!ok(nvml.peer_status, from, to, what, &status)) return std::nullopt;
  return status == 0;
}

std::string ancestor(const NvmlTable& nvml, NvmlDevice from, NvmlDevice to) {
  unsigned level = 0;
  if (!ok(nvml.common_ancestor, from, to, &level)) return "";
  switch (level) {  // nvmlGpuTopologyLevel_t
    case 0:
      return "internal";
    case 10:
      return "single switch";
    case 20:
      return "multiple switches";
    case 30:
      return "host bridge";
    case 40:
      return "node";
    case 50:
      return "system";
    default:
      return "";
  }
}

}  // namespace

void read_gpus(const NvmlTable& nvml, MachineFacts& facts) {
  if (const int code = nvml.init(); code != kNvmlSuccess) {
    const char* why = nvml.error_string != nullptr ? nvml.error_string(code) : nullptr;
    facts.nvml_absence =
        "the driver does not answer: " +
        (why != nullptr ? std::string(why) : "nvmlInit_v2 code " + std::to_string(code));
    return;
  }
  char version[96] = {};
  if (ok(nvml.driver_version, version, static_cast<unsigned>(sizeof version))) {
    facts.driver_version = version;
  }
  int cuda = 0;
  if (ok(nvml.cuda_version, &cuda)) {
    facts.driver_cuda_version =
        std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  }
  unsigned count = 0;
  if (!ok(nvml.count, &count)) count = 0;
  std::vector<NvmlDevice> devices;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    if (!ok(nvml.by_index, i, &device)) continue;
    devices.push_back(device);
    facts.gpus.push_back(read_gpu(nvml, device, static_cast<int>(i)));
  }
  for (std::size_t a = 0; a < devices.size(); ++a) {
    for (std::size_t b = 0; b < devices.size(); ++b) {
      if (a == b) continue;
      facts.peers.push_back({.from = facts.gpus[a].index,
                             .to = facts.gpus[b].index,
                             .read = peer(nvml, devices[a], devices[b], kRead),
                             .write = peer(nvml, devices[a], devices[b], kWrite),
                             .nvlink = peer(nvml, devices[a], devices[b], kNvlink),
                             .atomics = peer(nvml, devices[a], devices[b], kAtomics),
                             .ancestor = ancestor(nvml, devices[a], devices[b])});
    }
  }
  nvml.shutdown();
}

}  // namespace fulcrum::replay::machine
