// Acceptance of drafted tokens (F12).
#pragma once

#include <span>

namespace fulcrum {

/// Mean tokens per verification step: 1 + sum_i prod_{j<=i} a_j, where a_j is the probability that
/// draft j is accepted given that all before it were. Source: Leviathan et al., arXiv 2211.17192,
/// with position-dependent acceptance.
double accept_length(std::span<const double> acceptance);

/// Standard deviation of log(accept length) when every position's acceptance is off by the same
/// `standard_error`, first order.
double accept_length_log_sigma(std::span<const double> acceptance, double standard_error);

/// Variance of the accepted drafts of one step: sum (2i-1) P_i - (sum P_i)^2, P_i = prod_{j<=i}
/// a_j.
double accepted_drafts_variance(std::span<const double> acceptance);

}  // namespace fulcrum
