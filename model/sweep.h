// Many points of one deployment: concurrency and lengths varied, everything else as deployed.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "model/deployment.h"
#include "model/interval.h"
#include "model/predict.h"

namespace fulcrum {

struct SweepPoint {
  double concurrency = 1.0;
  double input_tokens = 1.0;
  double output_tokens = 1.0;
};

/// What `predict` says of a point, without the breakdown. `effective_batch` 0: the deployment does
/// not fit in memory, and the rest means nothing.
struct SweepRow {
  double effective_batch = 0.0;  ///< over all replicas
  BatchLimiter batch_limiter = BatchLimiter::kConcurrency;
  double accept_length = 1.0;
  Interval step_seconds;
  Interval tpot_seconds;
  Interval ttft_seconds;
  Interval output_tokens_per_second;
};

/// Calls `work(begin, end)` for up to `num_threads` parts of [0, count), each on a thread of its
/// own. Rethrows the first exception.
void for_parts(
    std::size_t count, int num_threads,
    const std::function<void(std::size_t part, std::size_t begin, std::size_t end)>& work);

/// Prices points on several threads, each with a pricer that keeps what it priced. The rows do not
/// depend on the number of threads.
class SweepRunner {
 public:
  SweepRunner(const Deployment& deployment, int num_threads);

  /// rows[i] is of points[i]; the spans are of one size.
  void run(std::span<const SweepPoint> points, std::span<SweepRow> rows);

 private:
  double replicas_;
  std::vector<ThroughputPricer> pricers_;
};

}  // namespace fulcrum
