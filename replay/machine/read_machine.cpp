#include "replay/machine/read_machine.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fulcrum::replay::machine {
namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.empty()) return std::nullopt;
  return line;
}

void read_nccl(MachineFacts& facts) {
  const char* named = std::getenv("FULCRUM_NCCL_LIBRARY");
  const std::string path = named != nullptr && *named != '\0' ? named : "libnccl.so.2";
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    facts.nccl_absence = path + " cannot be loaded";
    return;
  }
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) {
    facts.nccl_absence = path + " does not tell its version";
    return;
  }
  // NCCL_VERSION(X,Y,Z) of nccl.h since 2.9: X*10000 + Y*100 + Z.
  facts.nccl_version = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
                       "." + std::to_string(version % 100);
}

}  // namespace

HostFacts read_host(const std::string& root) {
  HostFacts host;
  std::ifstream info(root + "/proc/cpuinfo");
  int num_cpus = 0;
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (line.starts_with("processor")) ++num_cpus;
    if (line.starts_with("model name") && host.cpu.empty() && colon + 2 < line.size()) {
      host.cpu = line.substr(colon + 2);
    }
    if (line.starts_with("flags")) {
      host.virtual_machine = line.find(" hypervisor") != std::string::npos;
    }
  }
  if (num_cpus > 0) host.num_cpus = num_cpus;
  host.frequency_governor =
      first_line(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::error_code error;
  const std::filesystem::directory_iterator units(root + "/sys/class/iommu", error);
  if (!error) host.iommu = units != std::filesystem::directory_iterator();
  return host;
}

std::map<std::string, std::string> relevant_environment(const char* const* variables) {
  std::map<std::string, std::string> result;
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const char* equals = std::strchr(*variables, '=');
    if (equals == nullptr) continue;
    const std::string name(*variables, equals);
    if (name.starts_with("NCCL_") || name.starts_with("CUDA_")) result[name] = equals + 1;
  }
  return result;
}

MachineFacts read_machine() {
  MachineFacts facts;
  facts.host = read_host("");
  facts.environment = relevant_environment(environ);
  read_nccl(facts);
  const NvmlTable nvml = load_nvml(facts.nvml_absence);
  if (facts.nvml_absence.empty()) read_gpus(nvml, facts);
  return facts;
}

}  // namespace fulcrum::replay::machine
