// Random cache rows and rotary tables for the attention, indexer and row-wise kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/attention/kv_row.h"
#include "kernels/indexer/indexer.h"
#include "replay/verification.h"

namespace fulcrum::replay {

// Fills rows [0, num_rows) of a pool: any E4M3 code, scales 2^-10 .. 2^-6, BF16 values in [-4, 4).
void fill_kv_rows(const kernels::KvPool& pool, std::int64_t num_rows, std::uint64_t seed,
                  cudaStream_t stream);
// Any E4M3 code, scales in [2^-9, 2^-7).
void fill_index_rows(const kernels::IndexPool& pool, std::int64_t num_rows, std::uint64_t seed,
                     cudaStream_t stream);

// [positions, 32, 2] of cosines and sines with base `theta` (no scaling).
std::vector<float> rotary_table(int num_positions, double theta);

// Stored 584-byte rows against [rows, 512] unquantised values; every element may be off by its
// format's rounding. Defined in registry_rotary.cpp.
Verification compare_kv_rows(const std::vector<double>& reference,
                             const std::vector<std::int32_t>& rows, const kernels::KvPool& pool);

// `count` different values of [0, range) in random order.
std::vector<std::int32_t> distinct_values(int count, int range, std::uint64_t seed);

}  // namespace fulcrum::replay
