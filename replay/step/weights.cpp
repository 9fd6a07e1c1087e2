#include "replay/step/weights.h"

#include <algorithm>
#include <cmath>

#include "kernels/mhc/mhc.h"
#include "replay/case_parts.h"
#include "replay/random_fill.h"
#include "replay/timing.h"

namespace fulcrum::replay {
namespace {

using kernels::DeviceBuffer;

// Magnitudes that keep a chain of 43 layers finite: codes up to 4 have a root mean square of about
// 1.2, so 2^-7 to 2^-6 turn a normalised row of 4096 into outputs of order one.
constexpr std::uint8_t kMaxCode = 0x48;
constexpr std::uint8_t kLowScale = 120;
constexpr std::uint8_t kHighScale = 121;
constexpr int kScaleBlock = 128;

std::size_t size_of(double value) { return static_cast<std::size_t>(std::llround(value)); }

}  // namespace

RankWeights::RankWeights(const StepGraph& graph, std::int64_t l2_bytes, std::uint64_t seed)
    : seed_(seed) {
  const auto l2 = static_cast<double>(l2_bytes);
  std::map<OpId, const StepOp*> first;
  std::map<OpId, double> executions;
  for (const StepOp& op : graph.ops) {
    first.try_emplace(op.id, &op);
    if (!op.draft) {
      executions[op.id] += op.count;
    } else if (op.rows != Rows::kPerRequest && op.id != OpId::kLmHead) {
      executions[op.id] += op.count;  // all draft passes share one layer
    }
  }
  for (const auto& [id, op] : first) {
    const auto sets_for = [&](double bytes) {
      return std::max(static_cast<int>(executions[id]), sets_for_cold(bytes, l2));
    };
    if (const auto* gemm = std::get_if<GemmLaunch>(&op->shape)) {
      const double bytes = gemm->groups * gemm->n * gemm->k * std::ceil(gemm->weight_bits / 8.0);
      add_gemm(*op, sets_for(std::floor(bytes)));
    } else if (std::holds_alternative<MoeLaunch>(op->shape)) {
      add_experts(*op, static_cast<int>(executions[id]));
    } else if (id == OpId::kMhcPre || id == OpId::kHcHead) {
      const double columns = static_cast<double>(graph.model.hc_streams) * graph.model.hidden;
      add_mhc(*op, sets_for(4.0 * kernels::kMhcMixes * columns), graph.model.hidden);
    }
  }
  num_embedding_rows_ = graph.model.vocab / graph.settings.tensor_parallel;
  embedding_ = random_bf16(product({num_embedding_rows_, graph.model.hidden}), next_seed());
  bytes_ += static_cast<double>(embedding_.bytes());
}

void RankWeights::add_gemm(const StepOp& op, int num_sets) {
  const GemmLaunch& gemm = std::get<GemmLaunch>(op.shape);
  const std::size_t elements = size_of(gemm.groups * gemm.n * gemm.k);
  for (int set = 0; set < num_sets; ++set) {
    if (gemm.weight_bits >= 16.0) {
      // Rows of the gate, the compressors and the head: outputs of order one.
      const auto scale = static_cast<float>(std::sqrt(3.0 / gemm.k));
      bf16_[op.id].push_back(random_bf16(elements, next_seed(), -scale, scale));
      bytes_ += 2.0 * static_cast<double>(elements);
      continue;
    }
    Fp8Matrix matrix;
    matrix.codes = DeviceBuffer<std::uint8_t>(elements);
    matrix.scales =
        DeviceBuffer<std::uint8_t>(size_of(gemm.groups) * size_of(std::ceil(gemm.n / kScaleBlock)) *
                                   size_of(gemm.k / kScaleBlock));
    fill_e4m3(matrix.codes.data(), length(matrix.codes), next_seed(), nullptr, kMaxCode);
    fill_e8m0(matrix.scales.data(), length(matrix.scales), kLowScale, kHighScale, next_seed(),
              nullptr);
    bytes_ += static_cast<double>(matrix.codes.bytes() + matrix.scales.bytes());
    fp8_[op.id].push_back(std::move(matrix));
  }
}

void RankWeights::add_experts(const StepOp& op, int num_sets) {
  const MoeLaunch& moe = std::get<MoeLaunch>(op.shape);
  const std::size_t codes = size_of(moe.local_experts * moe.inter * moe.hidden / 2.0);
  const std::size_t scales = codes * 2 / 32;  // one per 32 columns
  const auto fill = [&](DeviceBuffer<std::uint8_t>& buffer, std::size_t size, bool is_scale) {
    buffer = DeviceBuffer<std::uint8_t>(size);
    if (is_scale) {
      fill_e8m0(buffer.data(), length(buffer), kLowScale, kHighScale, next_seed(), nullptr);
    } else {
      fill_bytes(buffer.data(), length(buffer), next_seed(), nullptr);  // any nibble is E2M1
    }
    bytes_ += static_cast<double>(size);
  };
  for (int set = 0; set < num_sets; ++set) {
    ExpertWeights experts;
    fill(experts.gate_up, 2 * codes, false);
    fill(experts.gate_up_scale, 2 * scales, true);
    fill(experts.down, codes, false);
    fill(experts.down_scale, scales, true);
    experts_[op.id].push_back(std::move(experts));
  }
}

void RankWeights::add_mhc(const StepOp& op, int num_sets, int hidden) {
  const std::size_t elements = product({kernels::kMhcMixes, kernels::kMhcStreams, hidden});
  for (int set = 0; set < num_sets; ++set) {
    MhcWeights weights;
    weights.fn = random_floats(elements, next_seed(), -0.02F, 0.02F);
    weights.scale = random_floats(3, next_seed(), 0.5F, 1.5F);
    weights.base = random_floats(kernels::kMhcMixes, next_seed());
    bytes_ += 4.0 * static_cast<double>(elements);
    mhc_[op.id].push_back(std::move(weights));
  }
}

int RankWeights::num_sets(OpId id) const {
  const auto count = [&](const auto& weights) {
    const auto it = weights.find(id);
    return it == weights.end() ? 0 : static_cast<int>(it->second.size());
  };
  return std::max({1, count(fp8_), count(bf16_), count(mhc_), count(experts_)});
}

}  // namespace fulcrum::replay
