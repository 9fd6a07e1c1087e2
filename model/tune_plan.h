// Which Triton GEMM shapes of a deployment are worth tuning, what tuning can give end to end, and
// which candidates can win.
#pragma once

#include <string>
#include <vector>

#include "model/deployment.h"
#include "model/interval.h"
#include "model/levers.h"
#include "model/triton_config.h"

namespace fulcrum {

struct RankedConfig {
  TritonConfig config;
  double seconds = 0.0;  ///< predicted, of one launch
};

/// One (N, K) at one tuned token count.
struct TunePair {
  int n = 0;
  int k = 0;
  int m = 0;                             ///< a tuner's batch size
  double concurrency = 0.0;              ///< whose decode step uses it
  double launches = 0.0;                 ///< in that step
  double now_seconds = 0.0;              ///< of one launch, with what the kernel set runs
  double best_seconds = 0.0;             ///< of one launch, the best candidate by the law
  double share_fraction = 0.0;           ///< of the step, all launches
  Interval gain_ratio;                   ///< end to end, output tokens/s
  double ceiling_ratio = 1.0;            ///< the same if these launches took no time
  double full_minutes = 0.0;             ///< wall time to try every candidate
  double cut_minutes = 0.0;              ///< to try those left
  int num_candidates = 0;                ///< of the tuner
  std::vector<RankedConfig> candidates;  ///< that can win, fastest first
  Verdict verdict = Verdict::kCannotTell;
};

struct TuneOptions {
  double num_gpus = 8.0;  ///< the tuner spreads batch sizes over these
  /// GPU seconds to compile and time one candidate once. The campaign's run: 27 min x 8 GPUs for
  /// 5 shapes x 18 batch sizes x 1280 candidates = 0.1125 s.
  double candidate_gpu_seconds = 0.1125;
  double most_candidates_fraction = 0.1;  ///< of the tuner's, kept at most
};

struct TunePlan {
  std::string kernel;           ///< what the scenario runs now
  std::vector<TunePair> pairs;  ///< largest expected gain first
  double full_minutes = 0.0;    ///< the tuner as it comes: all shapes, all 18 batch sizes
  double cut_minutes = 0.0;     ///< the pairs with verdict do, their candidates only
  Interval gain_all_ratio;      ///< every pair of the first concurrency tuned
  double ceiling_all_ratio = 1.0;
};

/// `tuned` is the deployment with tuned configurations, whose law prices the candidates. Throws
/// std::invalid_argument where the FP8 GEMM of either is not a Triton kernel.
TunePlan tune_plan(const Deployment& deployment, const Deployment& tuned,
                   const TuneOptions& options = {});

/// Predicted seconds of one launch of (m, n, k) under `config`, by the law of `tuned`.
double tuned_seconds(const Deployment& tuned, const TritonConfig& config, double m, int n, int k);

}  // namespace fulcrum
