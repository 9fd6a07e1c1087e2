// From an op of the step graph to the kernel of this repository that runs it. The only place where
// model/ and the registry's names meet; no GPU and no CUDA needed.
#pragma once

#include <string>

#include "model/step_graph.h"

namespace fulcrum::replay {

// Exactly one of `kernel` and `absence` is empty.
struct Binding {
  std::string kernel;   // A name of the registry.
  std::string shape;    // Its shape, in parse_shape() syntax.
  double launches = 1;  // Of that kernel per execution of the op (groups of a grouped GEMM).
  std::string absence;  // Why no kernel here runs the op alone.
};

// Which implementation to take where the registry has several.
struct BindOptions {
  enum class Gemm { kOwn, kCublasLt };
  enum class Moe { kGrouped, kPerSlot };
  enum class Attention { kSplitK, kRowLoop };
  Gemm fp8_gemm = Gemm::kOwn;
  Moe moe = Moe::kGrouped;
  Attention attention = Attention::kSplitK;
};

// `op` belongs to `graph`. Fractional mean values of a state (rows, keys, tokens) are rounded up to
// whole ones.
Binding bind_op(const StepGraph& graph, const StepOp& op, const StepState& state,
                const BindOptions& options = {});

}  // namespace fulcrum::replay
