// Launch parameters of a Triton block-scaled GEMM, the candidates the engines' tuners try, and what
// the GEMM law says of each.
#pragma once

#include <optional>
#include <vector>

#include "model/hardware.h"
#include "model/law_table.h"

namespace fulcrum {

/// One candidate, with the names of the tuners' JSON (BLOCK_SIZE_M, ..., num_stages).
struct TritonConfig {
  int block_m = 64;
  int block_n = 128;
  int block_k = 128;
  int group_m = 32;
  int num_warps = 4;
  int num_stages = 3;
  bool operator==(const TritonConfig&) const = default;
};

/// What w8a8_block_fp8_matmul of SGLang and vLLM runs without a tuned file: 64 rows, one weight
/// block, group 32, 4 warps, 3 stages. Source: fp8_kernel.py, fp8_utils.py.
inline constexpr TritonConfig kDefaultTritonConfig{};

/// The 1280 candidates of both engines' tuners (benchmark/kernels/.../tuning_block_wise_kernel.py):
/// stages 2-5, block_m 16-256, block_k 64 and 128, block_n 32-256, warps 4 and 8, groups 1-64.
std::vector<TritonConfig> tuner_candidates();

/// The token counts the tuners time and the engines look up.
std::vector<int> tuner_batch_sizes();

/// Which of the tuned token counts an engine uses for m tokens: the nearest, the smaller on a tie.
int nearest_batch_size(const std::vector<int>& batch_sizes, double m);

/// Why a candidate cannot win for this shape; nothing where it may. Only what is certain:
/// shared memory and registers it cannot have, rows or columns that are all padding, and a launch
/// order that makes no difference.
std::optional<const char*> why_hopeless(const TritonConfig& config, const GemmLaunch& launch,
                                        const Hardware& hardware);

/// Seconds of one launch under `config`. `cost` is the kernel set's law of this kernel: its floors
/// are those of three stages, and a k-iteration waits for the latency of one fetch divided by the
/// stages in flight. Leaves out warps (neither count is ahead in the public configs) and group_m.
double triton_seconds(const GemmCost& cost, const TritonConfig& config, const GemmLaunch& launch,
                      const LawDevice& device);

}  // namespace fulcrum
