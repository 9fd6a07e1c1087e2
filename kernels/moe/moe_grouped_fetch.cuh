// The stream of weight chunks of one block of moe_grouped.cuh, and its copy into shared memory.
#pragma once

#include <algorithm>

#include "kernels/common/async_copy.cuh"
#include "kernels/moe/moe_parts.h"

namespace fulcrum::kernels {

// Two row tiles of 16 per warp. w13: gate and up of the same 16 columns, k shared out among eight
// warps. w2: four pairs of warps, each pair 32 rows.
template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
struct GroupedShape {
  static constexpr int kThreads = 256;
  static constexpr int kWarpsK = kGateUp ? 8 : 2;
  static constexpr int kRowTiles = 2;
  static constexpr int kRows = 16 * kRowTiles * (8 / kWarpsK);     // weight rows of a block
  static constexpr int kColumnsOut = kGateUp ? kRows / 2 : kRows;  // result columns of a block
  static constexpr int kChunk = 128 * kWarpsK;                     // columns of k: one step
  static constexpr int kDataBytes = kChunk / 2;
  static constexpr int kGroup = fp4_group(kFormat);
  static constexpr int kScaleBytes = kChunk / kGroup;
  static constexpr int kLaneScaleBytes = 32 / kGroup;  // a lane takes 32 columns of a chunk
  static constexpr int kSlots = 3;
  // A pass of the copy takes whole rows.
  static constexpr int kLanes = kDataBytes / 16;
  static constexpr int kRowsPerPass = kThreads / kLanes;
  static constexpr int kPasses = kRows / kRowsPerPass;
  static constexpr int kTokens = 8 * kTokenTiles;
  static constexpr int kPartialPitch = kRows + 4;
  // Units begun but not stored: kSlots ahead of the one being multiplied, and the one before it.
  static constexpr int kUnitsKept = 8;
  static_assert(kSlots + 2 <= kUnitsKept);

  // Row of the matrix behind row r of shared memory, relative to the block's first.
  __host__ __device__ static constexpr int matrix_row(int r, int width) {
    return kGateUp ? r / 16 * width + r % 16 : r;
  }

  struct Unit {
    std::int32_t expert;
    std::int32_t row_block;
    std::int32_t tokens;  // in use, 1 .. kTokens
  };
  struct Shared {
    // 16-byte pieces of odd rows are swapped with those 64 bytes away: two rows of a fragment load
    // then lie in different banks.
    alignas(128) std::uint8_t data[kSlots][kRows * kDataBytes];
    alignas(16) std::uint8_t scales[kSlots][kRows * kScaleBytes];
    float partial[2][kWarpsK][kTokens][kPartialPitch];
    std::int32_t slots[kUnitsKept][kTokens];
    std::int32_t x_rows[kUnitsKept][kTokens];
    Unit units[kUnitsKept];
  };
};

// What is the same for all blocks and units of a launch; constant memory holds it.
struct GroupedPlan {
  int row_blocks = 0;       // of an expert
  int num_chunks = 0;       // of a unit
  int rows_per_expert = 0;  // of the weight matrix
  int row_bytes = 0;
  int scale_row_bytes = 0;
  int step_runs = 0;  // from one unit of a block to its next, in runs and row blocks
  int step_row_blocks = 0;
  unsigned pass_bytes[4] = {};  // from a thread's first row to the rows of its later passes
};

// Copies the block's stream of chunks, one per call of next().
template <Fp4Format kFormat, bool kGateUp, int kTokenTiles>
struct ChunkFetcher {
  using S = GroupedShape<kFormat, kGateUp, kTokenTiles>;
  static constexpr int kUnit = std::min(16, S::kScaleBytes);
  static constexpr int kUnits = S::kScaleBytes / kUnit;
  static_assert(S::kRows * kUnits <= S::kThreads && S::kRowsPerPass % 2 == 0);

  const MoeArgs& args;
  const MoeWorkspace& w;
  const GroupedPlan& plan;
  typename S::Shared& shared;
  int num_runs;
  int run;          // index of the next unit's run; num_runs or more: there is none
  int row_block;    // of that unit
  MoeRun next_run;  // already loaded: the stream never waits for it
  MoeRun current{};
  int current_row_block = 0;
  int base = 0;   // first sorted slot after the unit being copied
  int chunk = 0;  // of that unit; 0: the next unit has not begun
  int num_units = 0;
  int num_fetched = 0;
  int target;  // of the thread's first piece in a slot
  const std::uint8_t* source = nullptr;
  const std::uint8_t* scale_source = nullptr;

  __device__ __forceinline__ ChunkFetcher(const MoeArgs& arguments, const MoeWorkspace& workspace,
                                          const GroupedPlan& grouped_plan,
                                          typename S::Shared& memory)
      : args(arguments),
        w(workspace),
        plan(grouped_plan),
        shared(memory),
        num_runs(*workspace.num_runs),
        run(static_cast<int>(blockIdx.x) / grouped_plan.row_blocks),
        row_block(static_cast<int>(blockIdx.x) % grouped_plan.row_blocks) {
    const int row = static_cast<int>(threadIdx.x) / S::kLanes;
    const int piece = static_cast<int>(threadIdx.x) % S::kLanes;
    // kRowsPerPass is even: a thread's rows are all odd or all even.
    target = row * S::kDataBytes + 16 * (piece ^ (row & 1) << 2);
    asm volatile("" : "+r"(target));  // as LaneOffsets
    load_run();
  }

  __device__ __forceinline__ void load_run() {
    if (run < num_runs) next_run = w.runs[run];
  }

  __device__ __forceinline__ void begin_unit() {
    const int thread = static_cast<int>(threadIdx.x);
    if (base >= current.end) {
      current = next_run;
      current_row_block = row_block;
      base = current.begin;
      run += plan.step_runs;
      row_block += plan.step_row_blocks;
      if (row_block >= plan.row_blocks) {
        row_block -= plan.row_blocks;
        ++run;
      }
      load_run();
    }
    const int first_row = current_row_block * S::kColumnsOut;
    const std::int64_t first = static_cast<std::int64_t>(current.expert) * plan.rows_per_expert;
    source = (kGateUp ? args.weights.gate_up : args.weights.down) + first * plan.row_bytes +
             (first_row + S::matrix_row(thread / S::kLanes, args.shape.width)) * plan.row_bytes +
             16 * (thread % S::kLanes);
    const int scale_row = min(thread / kUnits, S::kRows - 1);
    scale_source = (kGateUp ? args.weights.gate_up_scale : args.weights.down_scale) +
                   first * plan.scale_row_bytes +
                   (first_row + S::matrix_row(scale_row, args.shape.width)) * plan.scale_row_bytes +
                   kUnit * (thread % kUnits);
    const int kept = num_units % S::kUnitsKept;
    const int tokens = min(S::kTokens, current.end - base);
    if (thread == 0) {
      shared.units[kept] = {
          .expert = current.expert, .row_block = current_row_block, .tokens = tokens};
    }
    if (thread < S::kTokens) {
      // Places beyond the last token repeat it; what is summed there is not stored.
      const int at = base + min(thread, tokens - 1);
      copy_async<4>(&shared.slots[kept][thread], w.sorted_slot + at, true);
      copy_async<4>(&shared.x_rows[kept][thread], (kGateUp ? w.sorted_token : w.sorted_slot) + at,
                    true);
    }
    ++num_units;
    base += S::kTokens;
  }

  // Starts the copy of the next chunk into `slot`, if there is one, and commits.
  __device__ __forceinline__ void next(int slot) {
    if (chunk > 0 || base < current.end || run < num_runs) {
      if (chunk == 0) begin_unit();
      const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
      for (int p = 0; p < S::kPasses; ++p) {
        copy_async<16>(shared.data[slot] + target + p * S::kRowsPerPass * S::kDataBytes,
                       source + plan.pass_bytes[p], true);
      }
      if (thread < S::kRows * kUnits) {
        copy_async<kUnit>(shared.scales[slot] + kUnit * thread, scale_source, true);
      }
      source += S::kDataBytes;
      scale_source += S::kScaleBytes;
      chunk = chunk + 1 == plan.num_chunks ? 0 : chunk + 1;
      ++num_fetched;
    }
    commit_copies();
  }
};

}  // namespace fulcrum::kernels
