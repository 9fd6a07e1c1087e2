// Full-size synthetic weights of one rank, generated on the GPU: every layer has its own, so that a
// step reads as many bytes from DRAM as in service. Matrices smaller than the L2 cache in all
// layers together get spare copies, so that an op timed alone can read cold ones too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/common/device_buffer.h"
#include "kernels/moe/moe.h"
#include "model/step_graph.h"

namespace fulcrum::replay {

/// E4M3 codes [groups * n, k] and one E8M0 scale per 128 x 128.
struct Fp8Matrix {
  kernels::DeviceBuffer<std::uint8_t> codes;
  kernels::DeviceBuffer<std::uint8_t> scales;
};

/// Hyper-connection weights of one site.
struct MhcWeights {
  kernels::DeviceBuffer<float> fn;  ///< [24, streams * hidden]
  kernels::DeviceBuffer<float> scale;
  kernels::DeviceBuffer<float> base;
};

/// MXFP4 experts of one layer.
struct ExpertWeights {
  kernels::DeviceBuffer<std::uint8_t> gate_up, gate_up_scale, down, down_scale;
};

class RankWeights {
 public:
  /// Throws kernels::CudaError when the device's memory does not hold them.
  RankWeights(const StepGraph& graph, std::int64_t l2_bytes, std::uint64_t seed);

  /// `set` counts modulo the copies there are.
  const Fp8Matrix& fp8(OpId id, int set) const { return at(fp8_, id, set); }
  const kernels::DeviceBuffer<std::uint16_t>& bf16(OpId id, int set) const {
    return at(bf16_, id, set);
  }
  const MhcWeights& mhc(OpId id, int set) const { return at(mhc_, id, set); }
  const ExpertWeights& experts(int set) const { return at(experts_, OpId::kRoutedExperts, set); }
  const std::uint16_t* embedding() const { return embedding_.data(); }
  int num_embedding_rows() const { return num_embedding_rows_; }

  /// Copies of the op's weights; 1 where it has none.
  int num_sets(OpId id) const;
  double bytes() const { return bytes_; }

 private:
  template <typename T>
  static const T& at(const std::map<OpId, std::vector<T>>& weights, OpId id, int set) {
    const std::vector<T>& sets = weights.at(id);
    return sets[static_cast<std::size_t>(set) % sets.size()];
  }
  void add_gemm(const StepOp& op, int num_sets);
  void add_experts(const StepOp& op, int num_sets);
  void add_mhc(const StepOp& op, int num_sets, int hidden);
  std::uint64_t next_seed() { return seed_ += 17; }

  std::map<OpId, std::vector<Fp8Matrix>> fp8_;
  std::map<OpId, std::vector<kernels::DeviceBuffer<std::uint16_t>>> bf16_;
  std::map<OpId, std::vector<MhcWeights>> mhc_;
  std::map<OpId, std::vector<ExpertWeights>> experts_;
  kernels::DeviceBuffer<std::uint16_t> embedding_;
  int num_embedding_rows_ = 0;
  std::uint64_t seed_;
  double bytes_ = 0.0;
};

}  // namespace fulcrum::replay
