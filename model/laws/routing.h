// Which experts a launch touches (F8): expected distinct experts, routed rows, blocks of rows.
//
// Uniform routing. A token picks k of E experts; a given expert is missed with probability 1 - k/E,
// by T independent tokens with (1 - k/E)^T, so U(T) = E (1 - (1 - k/E)^T).
//
// Skewed routing. Expert i is included in a token's top-k with probability pi_i = 1 - exp(-c p_i),
// c chosen so that the pi_i sum to k (Poisson sampling of popularity p_i); U(T) = sum 1-(1-pi_i)^T.
//
// Neighbours of one request (drafts). Expert i's use along a request is a two-state chain with
// stationary probability pi and lag-1 correlation rho: P(unused | previous unused) =
// 1 - pi (1 - rho), so W tokens of one request all miss i with (1 - pi) (1 - pi (1-rho))^(W-1).
//
// Sources: public facts and the Monte-Carlo checks in tests/model/laws/routing_test.cpp; the
// tables' `balanced` and `power_law` generators restated from aiconfigurator (collector/helper.py).
//
// Expert parallelism. Ranks that meet in an all-reduce wait for the one with most experts to read.
// A rank's count of n experts, each in use with probability u = U(T) / E, is near normal with
// variance n u (1 - u); the largest of R such counts exceeds their mean by c_R standard deviations,
// c_R the expected maximum of R standard normals (Harter 1961): 0.564, 1.029, 1.424 for 2, 4, 8.
// At T = 1, R = 2 that is 0.96 experts; exact is E|X - 3|, X hypergeometric: 0.94.
//
// Leaves out: correlation between different requests, and between layers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "model/laws/launches.h"

namespace fulcrum {

/// Block heights for which RoutedWork counts row blocks.
inline constexpr std::array<double, 4> kBlockRows{16.0, 32.0, 64.0, 128.0};

/// Expected work of one launch on one rank.
struct RoutedWork {
  double active_experts = 0.0;  ///< local experts with at least one row
  double rows = 0.0;            ///< (token, expert) pairs on this rank
  /// sum over active experts of ceil(rows of the expert / kBlockRows[i])
  std::array<double, kBlockRows.size()> row_blocks{};

  double blocks(std::size_t height_index) const { return row_blocks[height_index]; }
};

/// Distinct experts on this rank that `tokens` uniformly routed tokens touch, neighbours of one
/// request repeating a choice at the launch's correlation.
inline double expected_distinct_experts(const MoeLaunch& launch) {
  const double pi = launch.top_k / launch.num_experts;
  const double requests = launch.tokens / launch.tokens_per_request;
  const double miss_one_request =
      (1.0 - pi) *
      std::pow(1.0 - pi * (1.0 - launch.neighbour_correlation), launch.tokens_per_request - 1.0);
  return launch.local_experts * (1.0 - std::pow(miss_one_request, requests));
}

/// Experts by which the fullest of the launch's `waiting_ranks` exceeds the mean rank.
double expected_excess_experts(const MoeLaunch& launch);

/// Inclusion probabilities pi_i of a top-`top_k` draw with the given popularities (any positive
/// scale): pi_i = 1 - exp(-c p_i), sum pi_i = top_k. `inclusion` has popularity's size.
void inclusion_probabilities(std::span<const double> popularity, double top_k,
                             std::span<double> inclusion);

/// sum_i 1 - (1 - pi_i)^tokens.
double expected_distinct_experts(std::span<const double> inclusion, double tokens);

/// Popularity rank^-exponent, highest first.
void zipf_popularity(double exponent, std::span<double> popularity);

/// Work of a launch under its routing:
///  kUniform     binomial rows per expert; the correlation and the excess of the slowest waiting
///               rank enter active_experts only
///  kRoundRobin  the tables' `balanced` generator, exact: token t takes experts t + i ceil(E/k)
///  kPowerLaw    the tables' generator: counts drawn from x^-alpha, rounded to T k rows, the most
///               loaded EP rank; mean of 16 seeded draws
/// Cost: O(rows per expert) for kUniform, O(T k) and O(16 E) else; not for inner loops.
RoutedWork routed_work(const MoeLaunch& launch);

}  // namespace fulcrum
