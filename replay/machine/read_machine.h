// Asks the machine: NVML for the GPUs, /proc and /sys for the host, the environment, NCCL's
// version.
#pragma once

#include "replay/machine/facts.h"
#include "replay/machine/nvml_table.h"

namespace fulcrum::replay::machine {

/// Never throws for what is missing; that becomes an absence.
MachineFacts read_machine();

/// The GPU part, from a given table (tests pass their own).
void read_gpus(const NvmlTable& nvml, MachineFacts& facts);

/// The host part, from a root directory ("" for this machine) laid out like /proc and /sys.
HostFacts read_host(const std::string& root);

/// NCCL_* and CUDA_* of `variables` ("NAME=value", null-terminated array as in environ).
std::map<std::string, std::string> relevant_environment(const char* const* variables);

}  // namespace fulcrum::replay::machine
