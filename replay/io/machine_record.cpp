#include "replay/io/machine_record.h"

#include <nlohmann/json.hpp>

namespace fulcrum::replay {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

void put(Json& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

Json gpu_to_json(const machine::GpuFacts& gpu) {
  Json json = {{"index", gpu.index}};
  put(json, "name", gpu.name);
  put(json, "uuid", gpu.uuid);
  put(json, "pci_bus_id", gpu.pci_bus_id);
  put(json, "compute_capability", gpu.compute_capability);
  put(json, "memory_bytes", gpu.memory_bytes);
  put(json, "memory_used_bytes", gpu.memory_used_bytes);
  put(json, "sm_clock_hertz", gpu.sm_clock_hertz);
  put(json, "sm_clock_max_hertz", gpu.sm_clock_max_hertz);
  put(json, "sm_clock_application_hertz", gpu.sm_clock_application_hertz);
  put(json, "memory_clock_hertz", gpu.memory_clock_hertz);
  put(json, "memory_clock_max_hertz", gpu.memory_clock_max_hertz);
  put(json, "power_watts", gpu.power_watts);
  put(json, "power_limit_watts", gpu.power_limit_watts);
  put(json, "power_limit_default_watts", gpu.power_limit_default_watts);
  put(json, "power_limit_max_watts", gpu.power_limit_max_watts);
  put(json, "temperature_celsius", gpu.temperature_celsius);
  put(json, "slowdown_temperature_celsius", gpu.slowdown_temperature_celsius);
  put(json, "throttle_reasons", gpu.throttle_reasons);
  put(json, "persistence_mode", gpu.persistence_mode);
  put(json, "mig_mode", gpu.mig_mode);
  put(json, "ecc_mode", gpu.ecc_mode);
  put(json, "ecc_uncorrected_errors", gpu.ecc_uncorrected_errors);
  put(json, "compute_processes", gpu.compute_processes);
  put(json, "utilization_fraction", gpu.utilization_fraction);
  put(json, "pcie_generation", gpu.pcie_generation);
  put(json, "pcie_generation_max", gpu.pcie_generation_max);
  put(json, "pcie_lanes", gpu.pcie_lanes);
  put(json, "pcie_lanes_max", gpu.pcie_lanes_max);
  json["nvlinks_active"] = gpu.nvlinks_active;
  json["nvlinks_inactive"] = gpu.nvlinks_inactive;
  put(json, "nvlink_version", gpu.nvlink_version);
  return json;
}

Json peer_to_json(const machine::PeerFacts& peer) {
  Json json = {{"from", peer.from}, {"to", peer.to}};
  put(json, "read", peer.read);
  put(json, "write", peer.write);
  put(json, "nvlink", peer.nvlink);
  put(json, "atomics", peer.atomics);
  put(json, "common_ancestor", peer.ancestor);
  return json;
}

Json host_to_json(const machine::HostFacts& host) {
  Json json = Json::object();
  put(json, "cpu", host.cpu);
  put(json, "num_cpus", host.num_cpus);
  put(json, "frequency_governor", host.frequency_governor);
  put(json, "iommu", host.iommu);
  put(json, "virtual_machine", host.virtual_machine);
  return json;
}

}  // namespace

std::string machine_to_json(const machine::MachineFacts& facts) {
  Json json = Json::object();
  put(json, "nvml_absence", facts.nvml_absence);
  put(json, "driver_version", facts.driver_version);
  put(json, "driver_cuda_version", facts.driver_cuda_version);
  put(json, "nccl_version", facts.nccl_version);
  put(json, "nccl_absence", facts.nccl_absence);
  json["environment"] = facts.environment;
  json["host"] = host_to_json(facts.host);
  json["gpus"] = Json::array();
  for (const auto& gpu : facts.gpus) json["gpus"].push_back(gpu_to_json(gpu));
  json["peers"] = Json::array();
  for (const auto& peer : facts.peers) json["peers"].push_back(peer_to_json(peer));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fulcrum::replay
