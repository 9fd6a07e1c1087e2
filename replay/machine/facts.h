// What a machine says about itself: plain values, no calls. Absent means "could not be read", which
// is never the same as zero or off.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fulcrum::replay::machine {

struct GpuFacts {
  int index = 0;  ///< NVML's order, that of nvidia-smi
  std::string name{};
  std::string uuid{};
  std::string pci_bus_id{};
  std::optional<int> compute_capability{};  ///< 90 for 9.0
  std::optional<double> memory_bytes{};
  std::optional<double> memory_used_bytes{};
  std::optional<double> sm_clock_hertz{};
  std::optional<double> sm_clock_max_hertz{};
  std::optional<double> sm_clock_application_hertz{};  ///< what the card is set to aim for
  std::optional<double> memory_clock_hertz{};
  std::optional<double> memory_clock_max_hertz{};
  std::optional<double> power_watts{};
  std::optional<double> power_limit_watts{};
  std::optional<double> power_limit_default_watts{};
  std::optional<double> power_limit_max_watts{};
  std::optional<double> temperature_celsius{};
  std::optional<double> slowdown_temperature_celsius{};
  std::optional<std::uint64_t> throttle_reasons{};  ///< NVML clocks-event-reasons bit mask
  std::optional<bool> persistence_mode{};
  std::optional<bool> mig_mode{};
  std::optional<bool> ecc_mode{};
  std::optional<std::uint64_t> ecc_uncorrected_errors{};  ///< since the driver was loaded
  std::optional<int> compute_processes{};
  std::optional<double> utilization_fraction{};
  std::optional<int> pcie_generation{};
  std::optional<int> pcie_generation_max{};
  std::optional<int> pcie_lanes{};
  std::optional<int> pcie_lanes_max{};
  int nvlinks_active = 0;
  int nvlinks_inactive = 0;                     ///< links that exist and are down
  std::optional<std::string> nvlink_version{};  ///< "4.0"
};

/// What the driver says of one direction between two GPUs.
struct PeerFacts {
  int from = 0;
  int to = 0;
  std::optional<bool> read{};     ///< `from` can load from `to`'s memory
  std::optional<bool> write{};    ///< and store to it
  std::optional<bool> nvlink{};   ///< over NVLink
  std::optional<bool> atomics{};  ///< with native atomics
  std::string ancestor{};  ///< nearest common PCIe ancestor: internal, single switch, multiple
                           ///< switches, host bridge, node, system; "" if unknown
};

struct HostFacts {
  std::string cpu{};
  std::optional<int> num_cpus{};
  std::optional<std::string> frequency_governor{};  ///< of CPU 0
  std::optional<bool> iommu{};                      ///< translation units in use
  std::optional<bool> virtual_machine{};
};

struct MachineFacts {
  std::string nvml_absence{};  ///< why nothing of the GPUs is known; "" when NVML answers
  std::optional<std::string> driver_version{};
  std::optional<std::string> driver_cuda_version{};  ///< newest CUDA the driver supports, "13.0"
  std::optional<std::string> nccl_version{};         ///< of the library that would be loaded
  std::string nccl_absence{};                        ///< why there is none
  std::map<std::string, std::string> environment;    ///< NCCL_*, CUDA_* as set for this process
  HostFacts host;
  std::vector<GpuFacts> gpus;
  std::vector<PeerFacts> peers;
};

}  // namespace fulcrum::replay::machine
