#include "model/triton_config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace fulcrum {

std::vector<TritonConfig> tuner_candidates() {
  std::vector<TritonConfig> all;
  for (int num_stages : {2, 3, 4, 5}) {
    for (int block_m : {16, 32, 64, 128, 256}) {
      for (int block_k : {64, 128}) {
        for (int block_n : {32, 64, 128, 256}) {
          for (int num_warps : {4, 8}) {
            for (int group_m : {1, 16, 32, 64}) {
              all.push_back({block_m, block_n, block_k, group_m, num_warps, num_stages});
            }
          }
        }
      }
    }
  }
  return all;
}

std::vector<int> tuner_batch_sizes() {
  return {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096};
}

int nearest_batch_size(const std::vector<int>& batch_sizes, double m) {
  return *std::min_element(batch_sizes.begin(), batch_sizes.end(),
                           [&](int a, int b) { return std::abs(a - m) < std::abs(b - m); });
}

std::optional<const char*> why_hopeless(const TritonConfig& config, const GemmLaunch& launch,
                                        const Hardware& hardware) {
  constexpr int kSmallestTile = 16;  // rows of one tensor-core instruction
  int rows = kSmallestTile;
  while (rows < launch.m) rows *= 2;
  if (config.block_m > rows) return "more rows than tokens";
  if (config.block_n > launch.n) return "wider than the matrix";
  const double element_bytes = launch.weight_bits / 8.0;
  // The pipeliner holds at least num_stages - 1 tiles of each operand.
  const double shared_bytes =
      (config.num_stages - 1) * (config.block_m + config.block_n) * config.block_k * element_bytes;
  if (hardware.smem_per_block_kib && shared_bytes > hardware.smem_per_block_kib->value * 1024.0) {
    return "more shared memory than a block can have";
  }
  constexpr double kThreadsPerWarp = 32.0;
  constexpr double kRegistersPerThread = 255.0;  // CUDA's limit for one thread
  if (config.block_m * config.block_n / (kThreadsPerWarp * config.num_warps) >=
      kRegistersPerThread) {
    return "accumulators do not fit in registers";
  }
  if (launch.m <= config.block_m && config.group_m != 1) return "one row of tiles has one order";
  return std::nullopt;
}

double triton_seconds(const GemmCost& cost, const TritonConfig& config, const GemmLaunch& launch,
                      const LawDevice& device) {
  GemmStructure structure = *cost.structure;
  structure.tiles = {};
  structure.tiles[0].block_m = config.block_m;
  structure.tiles[0].block_n = config.block_n;
  structure.num_tiles = 1;
  structure.block_k = config.block_k;
  GemmLaw<double> law = cost.law;
  const double stages_in_flight = std::max(1, config.num_stages - 1);
  const double fitted_in_flight = kDefaultTritonConfig.num_stages - 1;
  law.iteration_floor_seconds *= fitted_in_flight / stages_in_flight;
  return gemm_seconds(law, structure, launch, device);
}

}  // namespace fulcrum
