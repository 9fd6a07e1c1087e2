// What an engine build runs on an architecture: op -> kernel -> cost law with parameters for one
// device. The kernel set decides the step time: the same cards differ 3-5x between builds.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "model/law_table.h"
#include "model/provenance.h"
#include "model/step_graph.h"

namespace fulcrum {

struct KernelBinding {
  std::string kernel;  ///< the kernel's name in traces, or a description
  std::string law;     ///< name in law_table(), or "fused"
  Law cost = FusedLaw{};
  /// Model discrepancy: standard deviation of log(measured / law) on held-out rows, or a stated
  /// guess when the basis is assumed.
  double log_sigma = 0.0;
  double sigma_seconds = 0.0;  ///< the same of each execution, a part that does not grow with it
  Basis basis = Basis::kAssumed;
  std::string source;
  std::string fused_into;  ///< op that does this one's work, when law is "fused"
  double launches = 1.0;   ///< GPU kernels launched per execution (eager host cost)
};

/// What the host does around the GPU's work.
struct HostCosts {
  double launch_seconds = 0.0;  ///< eager: host time to issue one kernel
  double step_seconds = 0.0;    ///< per step, not hidden behind the GPU
  /// Spread of log(served / modelled) between hosts that run the same build: clocks, cooling,
  /// neighbours, version drift. Common to both arms of an A/B.
  double system_log_sigma = 0.0;
  Basis basis = Basis::kAssumed;
  std::string source;
};

struct KernelSet {
  std::string name;
  std::string label;
  std::string architecture;  ///< e.g. "sm_120"
  KernelTraits traits;
  HostCosts host;
  std::array<KernelBinding, kNumOpIds> bindings;
  /// Kernels that take an op's place in prefill; nothing where decode and prefill run the same one.
  std::array<std::optional<KernelBinding>, kNumOpIds> prefill_bindings;

  const KernelBinding& binding(OpId id) const { return bindings[static_cast<std::size_t>(id)]; }
  KernelBinding& binding(OpId id) { return bindings[static_cast<std::size_t>(id)]; }
  const KernelBinding& binding(OpId id, bool prefill) const {
    const auto& own = prefill_bindings[static_cast<std::size_t>(id)];
    return prefill && own ? *own : binding(id);
  }
};

}  // namespace fulcrum
