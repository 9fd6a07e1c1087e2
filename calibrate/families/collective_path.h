// fulcrum/collectives/1 measurements: one collective by one carrier, protocol and algorithm.
#pragma once

#include "calibrate/family.h"

namespace fulcrum::calibrate {

/// Series with table "collectives_perf" and kernel_source as collective_source() writes it.
const Family& collective_path_family();

inline constexpr const char* kCollectivesTable = "collectives_perf";

/// "nccl_LL_Ring", "nccl_LL" (algorithm left to NCCL), "peer_one_shot". "" where NCCL chose the
/// protocol too: its choice changes with the size, so that no one law explains it.
std::string collective_source(const std::string& carrier, const std::string& protocol,
                              const std::string& algorithm);

}  // namespace fulcrum::calibrate
