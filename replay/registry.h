// All kernels that can be replayed: one table, in registry.cpp. No static registration.
#pragma once

#include <vector>

#include "replay/case.h"

namespace fulcrum::replay {

const std::vector<KernelEntry>& registry();

// Null when there is no such kernel.
const KernelEntry* find_kernel(const std::string& name);

// The parts of the table, one per registry_<family>.cpp.
std::vector<KernelEntry> selftest_entries();
std::vector<KernelEntry> gemm_entries();
std::vector<KernelEntry> moe_entries();
std::vector<KernelEntry> sm120_entries();
std::vector<KernelEntry> stream_entries();
std::vector<KernelEntry> attention_entries();
std::vector<KernelEntry> indexer_entries();
std::vector<KernelEntry> compressor_entries();
std::vector<KernelEntry> mhc_entries();
std::vector<KernelEntry> elementwise_entries();
std::vector<KernelEntry> rotary_entries();
std::vector<KernelEntry> router_entries();
std::vector<KernelEntry> head_entries();

}  // namespace fulcrum::replay
