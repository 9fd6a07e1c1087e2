// A scenario with everything it names resolved: what predict, levers and simulate work on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/hardware.h"
#include "model/kernel_set.h"
#include "model/model_config.h"
#include "model/provenance.h"

namespace fulcrum {

enum class EngineKind { kSglang, kVllm };

struct EngineSettings {
  EngineKind kind = EngineKind::kSglang;
  double memory_fraction = 0.0;  ///< of device memory, for weights and KV together
  int max_running_requests = 0;
  int max_context_tokens = 0;
  bool cuda_graph = false;
  double graph_capture_max_tokens = 0.0;  ///< tokens of a step beyond which it runs eager
  int chunked_prefill_tokens = 0;
  double window_to_full_tokens = 0.1;  ///< SGLang: window pool per pool token (its default)
};

struct Speculation {
  DraftMethod method = DraftMethod::kMtp;
  /// Drafted tokens per step: passes of MTP, the block of DSpark; 0 without speculation.
  int draft_tokens = 0;
  /// P(token i is accepted | all before it were), one entry per drafted token.
  std::vector<double> acceptance;
  /// Of each acceptance, from workload to workload; moves all positions together.
  double acceptance_standard_error = 0.0;
  std::string acceptance_source;
};

/// How lengths vary from request to request, as a factor of mean 1 on input and output, drawn
/// apart.
struct LengthSpread {
  enum class Kind { kFixed, kUniform, kLogNormal };
  Kind kind = Kind::kFixed;
  double cv = 0.0;  ///< standard deviation over mean

  /// Uniform in [ratio, 2 - ratio]: cv = (1 - ratio) / sqrt 3.
  static LengthSpread uniform(double ratio);
  static LengthSpread log_normal(double cv);
  /// The factor at two uniform draws from [0, 1).
  double factor(double u, double v) const;
};

struct Workload {
  double input_tokens = 0.0;   ///< mean
  double output_tokens = 0.0;  ///< mean
  LengthSpread lengths;
  double cached_prefix_tokens = 0.0;
  std::vector<double> concurrency;
  /// Prompts sent in all at each concurrency; empty: steady state only.
  std::vector<double> num_prompts;

  /// Prompts of the run at `concurrency`; nothing where none are stated, or too few to reach it.
  std::optional<double> prompts_at(double stated_concurrency) const;
};

struct Deployment {
  std::string name;
  std::string description;
  ModelConfig model;
  Hardware hardware;
  std::optional<Topology> topology;  ///< nothing with one GPU
  int num_gpus = 1;
  int tensor_parallel = 1;
  int expert_parallel = 1;
  KernelSet kernels;
  EngineSettings engine;
  Speculation speculation;
  Routing routing = Routing::kUniform;
  double power_law_alpha = 0.0;
  double neighbour_correlation = 0.0;
  Workload workload;

  /// Independent model replicas (data parallelism): GPUs / TP.
  double replicas() const { return static_cast<double>(num_gpus) / tensor_parallel; }
  GraphSettings graph_settings() const;
  LawDevice law_device() const;
};

}  // namespace fulcrum
