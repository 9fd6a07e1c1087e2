// A published or measured serving point together with the deployment it was measured on: what
// `validate` scores and `check` judges.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/deployment.h"
#include "model/serving_result.h"

namespace fulcrum {

/// What was measured at one load. `tpot_seconds` of a case file is the mean over requests.
struct Measured {
  ServingResult result;
  std::optional<double> step_seconds;  ///< one engine forward pass, draft passes included
};

/// Something the record does not state: the prediction is made at both ends of its range.
struct AssumedRange {
  std::string what;               ///< the scenario path, or a name
  std::string why;                ///< where the range comes from
  std::optional<Deployment> low;  ///< the deployment at either end; nothing where only a spread
  std::optional<Deployment> high;
  double log_sigma = 0.0;  ///< a spread stated directly
};

struct Case {
  std::string id;
  std::string source;
  std::string panel;  ///< cases of one panel differ in concurrency only: their shape is scored
  std::string pair;   ///< two cases of one pair are arms of an A/B, in file order
  std::string split;  ///< "build": seen while kernel sets were built, "held_out", or empty
  Deployment deployment;
  double concurrency = 1.0;
  Measured measured;
  /// The accept length is the workload's, not the model's: a stated one is taken as given.
  bool acceptance_is_measured = false;
  /// Lengths are uniform in [ratio, 2 - ratio] times the mean; 1: all alike.
  double length_ratio = 1.0;
  std::vector<AssumedRange> assumptions;
};

struct ExcludedCase {
  std::string id;
  std::string why;
  Measured measured;  ///< its own arithmetic can be checked all the same
};

struct CaseSet {
  std::vector<Case> cases;
  std::vector<ExcludedCase> excluded;
  std::vector<std::string> warnings;
};

/// Makes `speculation` yield `accept_length` on average, keeping the shape of its positions, and
/// its spread that of a measured mean. False where the mean lies outside (1, 1 + draft tokens).
bool condition_on_accept_length(Speculation& speculation, double accept_length);

}  // namespace fulcrum
