// Where acceptance probabilities come from: positions measured, a mean accept length, a log (F12).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/model_config.h"

namespace fulcrum {

/// A published measurement of one workload.
struct AcceptanceProfile {
  std::string name;
  std::string description;
  DraftMethod method = DraftMethod::kMtp;
  std::vector<double> reached;  ///< P(drafts 1..i all accepted), not increasing
  double published_low = 0.0;   ///< accept length as published, a range or twice one number
  double published_high = 0.0;
  double standard_error = 0.0;  ///< of each conditional acceptance
  std::string source;
};

/// a_i = reached_i / reached_(i-1): P(draft i accepted | all before it were).
std::vector<double> conditional_acceptance(std::span<const double> reached);

/// Acceptance for `draft_tokens` positions: the first of `conditional`, and where it has fewer, its
/// last one times the mean decline from position to position (never rising). The decline is what
/// every published ladder shows; a constant continuation overstates long drafts.
std::vector<double> acceptance_for(std::span<const double> conditional, int draft_tokens);

/// Turns a mean accept length over `draft_tokens` drafts into positions: a_i = s_i^t with the shape
/// s of a measured workload and the one t that gives the mean. Nothing when the mean lies outside
/// (1, 1 + draft_tokens).
std::optional<std::vector<double>> positions_from_accept_length(double accept_length,
                                                                int draft_tokens,
                                                                std::span<const double> shape);

/// From a log: steps[i] counts the steps that accepted exactly i drafts. Positions never tried get
/// zero. Nothing when no step is counted.
std::optional<std::vector<double>> acceptance_from_counts(std::span<const double> steps);

/// The one constant a whose accept length (1 - a^(K+1)) / (1 - a) is `accept_length`.
double constant_acceptance(double accept_length, int draft_tokens);

}  // namespace fulcrum
