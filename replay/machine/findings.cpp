#include "replay/machine/findings.h"

#include <algorithm>
#include <cstdio>

#include "replay/nvml.h"

namespace fulcrum::replay::machine {
namespace {

/// Cards report limits and clocks in steps; less than this below the mark is no finding.
constexpr double kNoticeableShare = 0.01;
/// Closer than this to its slowdown threshold, a card throttles within a longer measurement.
constexpr double kHotMarginCelsius = 10.0;
/// The driver's own reserve on a data-centre card is below 1 GB; more belongs to somebody.
constexpr double kForeignMemoryBytes = 2e9;
/// A card nobody uses reads 0; a monitor or this program itself may show as a per cent.
constexpr double kBusyFraction = 0.05;

std::string format(const char* pattern, double value, const char* unit = "") {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return std::string(text) + unit;
}

std::string watts(double value) { return format("%.0f W", value); }
std::string megahertz(double value) { return format("%.0f MHz", 1e-6 * value); }

bool below(double value, double mark) { return value < (1.0 - kNoticeableShare) * mark; }

class Findings {
 public:
  void at(std::string where) { where_ = std::move(where); }
  void add(Severity severity, const char* code, std::string what, std::string why,
           std::string remedy = "") {
    list_.push_back({severity, code, where_, std::move(what), std::move(why), std::move(remedy)});
  }
  std::vector<Finding> sorted() && {
    std::stable_sort(list_.begin(), list_.end(),
                     [](const auto& a, const auto& b) { return a.severity < b.severity; });
    return std::move(list_);
  }

 private:
  std::string where_;
  std::vector<Finding> list_;
};

void look_at_driver(const MachineFacts& facts, Findings& out) {
  out.at("host");
  if (!facts.nvml_absence.empty()) {
    out.add(Severity::kBlocks, "no_driver", facts.nvml_absence,
            "no kernel can be replayed here; predictions do not need a GPU",
            "install NVIDIA's driver, or run `replay` on the machine with the GPUs");
  } else if (facts.gpus.empty()) {
    out.add(Severity::kBlocks, "no_gpu", "the driver lists no GPU",
            "no kernel can be replayed here; predictions do not need a GPU");
  }
  if (facts.gpus.size() > 1 && !facts.nccl_version) {
    out.add(Severity::kDistorts, "no_nccl", facts.nccl_absence,
            "collectives cannot be measured, only the repo's own peer all-reduce",
            "install libnccl2, or name the file in FULCRUM_NCCL_LIBRARY");
  }
}

void look_at_host(const HostFacts& host, bool several_gpus, Findings& out) {
  out.at("host");
  if (host.frequency_governor && *host.frequency_governor != "performance") {
    out.add(Severity::kDistorts, "cpu_governor", "CPU governor " + *host.frequency_governor,
            "eager launches are timed on a CPU that changes its clock",
            "cpupower frequency-set -g performance");
  }
  if (several_gpus && host.iommu.value_or(false)) {
    out.add(
        Severity::kNote, "iommu", "IOMMU in use",
        "PCIe peer traffic may go through the root complex (ACS), slower than switch to switch");
  }
  if (host.virtual_machine.value_or(false)) {
    out.add(Severity::kNote, "virtual_machine", "the host is a virtual machine",
            "launch costs and PCIe topology are the hypervisor's, not the board's");
  }
}

struct VariableRule {
  const char* name;
  const char* distorting_value;  ///< nullptr: any value is a note
  const char* code;
  const char* why;
};

constexpr VariableRule kVariableRules[] = {
    {"CUDA_LAUNCH_BLOCKING", "1", "launch_blocking", "every launch waits for its kernel"},
    {"NCCL_P2P_DISABLE", "1", "nccl_p2p_off", "NCCL copies through host memory"},
    {"NCCL_SHM_DISABLE", "1", "nccl_shm_off", "NCCL leaves the host's memory for its network"},
    {"NCCL_DEBUG", "TRACE", "nccl_trace", "NCCL writes a line per call"},
    {"NCCL_PROTO", nullptr, "nccl_proto_set",
     "NCCL's own choice of protocol is not what is measured"},
    {"NCCL_ALGO", nullptr, "nccl_algo_set",
     "NCCL's own choice of algorithm is not what is measured"},
    {"CUDA_VISIBLE_DEVICES", nullptr, "devices_hidden",
     "CUDA numbers the GPUs differently from here"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", nullptr, "connections_set", "side streams may serialise"},
};

void look_at_environment(const std::map<std::string, std::string>& environment, Findings& out) {
  out.at("environment");
  for (const VariableRule& rule : kVariableRules) {
    const auto found = environment.find(rule.name);
    if (found == environment.end()) continue;
    if (rule.distorting_value != nullptr && found->second != rule.distorting_value) continue;
    out.add(rule.distorting_value != nullptr ? Severity::kDistorts : Severity::kNote, rule.code,
            found->first + "=" + found->second, rule.why, std::string("unset ") + rule.name);
  }
}

void look_at_power_and_clocks(const GpuFacts& gpu, Findings& out) {
  if (gpu.power_limit_watts && gpu.power_limit_default_watts &&
      below(*gpu.power_limit_watts, *gpu.power_limit_default_watts)) {
    out.add(Severity::kDistorts, "power_capped",
            "power limit " + watts(*gpu.power_limit_watts) + " of " +
                watts(*gpu.power_limit_default_watts),
            "long kernels run below the clocks the datasheet and the shipped calibrations assume",
            "nvidia-smi -i " + std::to_string(gpu.index) + " -pl " +
                format("%.0f", *gpu.power_limit_default_watts));
  }
  if (gpu.sm_clock_application_hertz && gpu.sm_clock_max_hertz &&
      below(*gpu.sm_clock_application_hertz, *gpu.sm_clock_max_hertz)) {
    out.add(Severity::kDistorts, "clock_set_low",
            "SM clock set to " + megahertz(*gpu.sm_clock_application_hertz) + " of " +
                megahertz(*gpu.sm_clock_max_hertz),
            "compute and latency scale with the clock",
            "nvidia-smi -i " + std::to_string(gpu.index) + " -rac");
  }
  if (const std::uint64_t bits = gpu.throttle_reasons.value_or(0) & kThrottleMask; bits != 0) {
    std::string reasons;
    const auto name = [&](std::uint64_t bit, const char* text) {
      if ((bits & bit) != 0) reasons += (reasons.empty() ? "" : ", ") + std::string(text);
    };
    name(0x4, "power cap");
    name(0x8, "hardware slowdown");
    name(0x20, "software thermal limit");
    name(0x40, "hardware thermal limit");
    name(0x80, "power brake");
    out.add(Severity::kDistorts, "throttled", "throttling now: " + reasons,
            "kernels run slower than they would on a healthy card",
            "look at cooling and power supply");
  }
  if (gpu.temperature_celsius && gpu.slowdown_temperature_celsius &&
      *gpu.temperature_celsius > *gpu.slowdown_temperature_celsius - kHotMarginCelsius) {
    out.add(Severity::kDistorts, "hot",
            format("%.0f C", *gpu.temperature_celsius) +
                format(", slows down at %.0f C", *gpu.slowdown_temperature_celsius),
            "a longer measurement will throttle", "look at cooling");
  }
  if (gpu.persistence_mode && !*gpu.persistence_mode) {
    out.add(Severity::kNote, "persistence_off", "persistence mode off",
            "the driver unloads between programs: slow first use, settings lost",
            "nvidia-smi -pm 1");
  }
}

void look_at_sharing(const GpuFacts& gpu, Findings& out) {
  if (gpu.mig_mode.value_or(false)) {
    out.add(Severity::kDistorts, "mig", "MIG on",
            "a slice is measured: its SMs, bandwidth and L2 are not the card's",
            "nvidia-smi -i " + std::to_string(gpu.index) + " -mig 0");
  }
  if (const int others = gpu.compute_processes.value_or(0); others > 0) {
    out.add(Severity::kDistorts, "other_processes",
            std::to_string(others) + (others == 1 ? " process" : " processes") + " on the GPU",
            "they take SMs, bandwidth and L2 while a kernel is timed", "stop them first");
  } else if (gpu.utilization_fraction.value_or(0.0) > kBusyFraction) {
    out.add(Severity::kDistorts, "busy",
            format("%.0f %% utilization", 100.0 * *gpu.utilization_fraction) +
                " without a visible process",
            "somebody in another container takes SMs and bandwidth", "find and stop it");
  } else if (gpu.memory_used_bytes.value_or(0.0) > kForeignMemoryBytes) {
    out.add(Severity::kNote, "memory_taken",
            format("%.1f GB of memory taken", 1e-9 * *gpu.memory_used_bytes),
            "a step of full size may not fit");
  }
  if (gpu.ecc_mode && !*gpu.ecc_mode) {
    out.add(Severity::kNote, "ecc_off", "ECC off",
            "on GDDR cards bandwidth and capacity are higher than with it");
  }
  if (gpu.ecc_uncorrected_errors.value_or(0) > 0) {
    out.add(Severity::kDistorts, "ecc_errors",
            std::to_string(*gpu.ecc_uncorrected_errors) + " uncorrected memory errors",
            "results cannot be trusted", "reset or replace the card");
  }
}

void look_at_links(const GpuFacts& gpu, Findings& out) {
  if (gpu.pcie_lanes && gpu.pcie_lanes_max && *gpu.pcie_lanes < *gpu.pcie_lanes_max) {
    out.add(
        Severity::kDistorts, "pcie_narrow",
        "PCIe x" + std::to_string(*gpu.pcie_lanes) + " of x" + std::to_string(*gpu.pcie_lanes_max),
        "collectives over PCIe and host copies get that share of the bandwidth",
        "reseat the card, or look at the slot's wiring");
  }
  if (gpu.pcie_generation && gpu.pcie_generation_max &&
      *gpu.pcie_generation < *gpu.pcie_generation_max) {
    out.add(Severity::kNote, "pcie_generation_low",
            "PCIe generation " + std::to_string(*gpu.pcie_generation) + " of " +
                std::to_string(*gpu.pcie_generation_max),
            "an idle link trains down; if it stays there under load, transfers are slower");
  }
  if (gpu.nvlinks_active > 0 && gpu.nvlinks_inactive > 0) {
    out.add(Severity::kDistorts, "nvlink_down",
            std::to_string(gpu.nvlinks_inactive) + " of " +
                std::to_string(gpu.nvlinks_active + gpu.nvlinks_inactive) + " NVLinks down",
            "collectives get less than the datasheet's bandwidth");
  }
}

void look_at_pairs(const MachineFacts& facts, Findings& out) {
  const auto broken = [](const PeerFacts& pair) {
    return !pair.read.value_or(true) || !pair.write.value_or(true);
  };
  for (const PeerFacts& pair : facts.peers) {
    // Each pair once, for either direction.
    const bool any = std::any_of(facts.peers.begin(), facts.peers.end(), [&](const auto& other) {
      const bool same = other.from == pair.from && other.to == pair.to;
      const bool reverse = other.from == pair.to && other.to == pair.from;
      return (same || reverse) && broken(other);
    });
    if (pair.from > pair.to || !any) continue;
    out.at("GPU " + std::to_string(pair.from) + " - GPU " + std::to_string(pair.to));
    out.add(Severity::kDistorts, "no_peer_access", "no peer access",
            "collectives go through host memory: several times the latency",
            "look at ACS, IOMMU and the BIOS's above-4G decoding");
  }
  for (const GpuFacts& gpu : facts.gpus) {
    if (gpu.name == facts.gpus.front().name) continue;
    out.at("GPU " + std::to_string(gpu.index));
    out.add(Severity::kNote, "mixed_gpus", gpu.name + " beside " + facts.gpus.front().name,
            "a tensor-parallel step waits for the slower card");
  }
}

}  // namespace

const char* to_string(Severity severity) {
  switch (severity) {
    case Severity::kBlocks:
      return "blocks";
    case Severity::kDistorts:
      return "distorts";
    case Severity::kNote:
      return "note";
  }
  return "unknown";
}

std::vector<Finding> find(const MachineFacts& facts) {
  Findings out;
  look_at_driver(facts, out);
  look_at_host(facts.host, facts.gpus.size() > 1, out);
  look_at_environment(facts.environment, out);
  for (const GpuFacts& gpu : facts.gpus) {
    out.at("GPU " + std::to_string(gpu.index));
    look_at_sharing(gpu, out);
    look_at_power_and_clocks(gpu, out);
    look_at_links(gpu, out);
  }
  look_at_pairs(facts, out);
  return std::move(out).sorted();
}

}  // namespace fulcrum::replay::machine
