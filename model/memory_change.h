// Which entry of the memory ledger lets one deployment serve fewer requests than another (F19).
#pragma once

#include <string>
#include <vector>

#include "model/deployment.h"
#include "model/memory.h"

namespace fulcrum {

/// One entry's part of the change. The factors of all entries multiply to the ratio of what fits.
struct LedgerCause {
  std::string entry;    ///< e.g. "HCA states a token", "memory fraction"
  double factor = 1.0;  ///< below 1: it lowers the batch
};

struct BatchChange {
  double concurrency = 0.0;
  EffectiveBatch before;  ///< of one replica
  EffectiveBatch after;
  double fits_before = 0.0;  ///< requests the pool holds, not rounded
  double fits_after = 0.0;
  std::vector<LedgerCause> causes;  ///< strongest first; empty where a deployment does not fit
  /// The batches are the same, so that a difference measures what was meant to differ.
  bool comparable() const { return before.requests == after.requests; }
  /// One of the batches is bound by memory and not by a setting.
  bool by_memory() const;
};

/// Both at the same concurrency, each with its own workload. The pool's fall is split exactly and
/// whatever the order: bytes of the pool by their share of its change, bytes a token by theirs
/// (logarithmic mean weights). Leaves out page rounding and the window pool's own bound.
BatchChange explain_batch(const Deployment& before, const Deployment& after, double concurrency);

}  // namespace fulcrum
