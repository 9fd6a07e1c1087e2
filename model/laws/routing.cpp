#include "model/laws/routing.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace fulcrum {
namespace {

void add_expert(double rows, RoutedWork& work, double weight = 1.0) {
  if (rows <= 0.0) return;
  work.active_experts += weight;
  work.rows += weight * rows;
  for (std::size_t i = 0; i < kBlockRows.size(); ++i) {
    work.row_blocks[i] += weight * std::ceil(rows / kBlockRows[i]);
  }
}

RoutedWork uniform_work(const MoeLaunch& launch) {
  RoutedWork work;
  work.active_experts = expected_distinct_experts(launch) + expected_excess_experts(launch);
  const double p = launch.top_k / launch.num_experts;
  const double mean = launch.tokens * p;
  work.rows = launch.local_experts * mean;
  if (launch.tokens <= kBlockRows[0]) {  // no expert can fill a second block
    work.row_blocks.fill(work.active_experts);
    return work;
  }
  // Blocks beyond an expert's first: sum over j >= 1 of P(rows > j b), rows ~ Binomial(T, p).
  const double sd = std::sqrt(mean * (1.0 - p));
  const double last = std::min(launch.tokens, std::ceil(mean + 12.0 * sd + 12.0));
  double pmf = std::pow(1.0 - p, launch.tokens);
  if (pmf < 1e-290) {  // mean far above any block height: rows are smooth on that scale
    for (std::size_t i = 0; i < kBlockRows.size(); ++i) {
      work.row_blocks[i] = launch.local_experts * (mean / kBlockRows[i] + 0.5);
    }
    return work;
  }
  std::array<double, kBlockRows.size()> extra{};
  const double odds = p / (1.0 - p);
  for (double n = 0.0; n <= last; n += 1.0) {
    for (std::size_t i = 0; i < kBlockRows.size() && n > kBlockRows[i]; ++i) {
      extra[i] += pmf * (std::ceil(n / kBlockRows[i]) - 1.0);
    }
    pmf *= (launch.tokens - n) / (n + 1.0) * odds;
  }
  for (std::size_t i = 0; i < kBlockRows.size(); ++i) {
    work.row_blocks[i] = work.active_experts + launch.local_experts * extra[i];
  }
  return work;
}

RoutedWork round_robin_work(const MoeLaunch& launch) {
  const auto tokens = static_cast<std::int64_t>(launch.tokens);
  const auto experts = static_cast<std::int64_t>(launch.num_experts);
  const auto top_k = static_cast<std::int64_t>(launch.top_k);
  const std::int64_t stride = (experts + top_k - 1) / top_k;
  std::vector<double> rows(static_cast<std::size_t>(experts), 0.0);
  for (std::int64_t t = 0; t < tokens; ++t) {
    // Fewer tokens than the stride are spread over it.
    const std::int64_t first = tokens >= stride ? t : t * stride / tokens;
    for (std::int64_t i = 0; i < top_k; ++i) {
      rows[static_cast<std::size_t>((first + i * stride) % experts)] += 1.0;
    }
  }
  RoutedWork work;
  const auto local = static_cast<std::size_t>(launch.local_experts);
  for (std::size_t e = 0; e < local; ++e) add_expert(rows[e], work);
  return work;
}

/// Adds `step` to one expert of each rank in turn, `remaining` times: the emptiest one that may
/// grow (step 1), the fullest one that may shrink (step -1).
void adjust(std::vector<std::int64_t>& rows, std::size_t ranks, std::int64_t remaining,
            std::int64_t step, std::int64_t most) {
  const std::size_t per_rank = rows.size() / ranks;
  bool progressed = true;
  while (remaining > 0 && progressed) {
    progressed = false;
    for (std::size_t r = 0; r < ranks && remaining > 0; ++r) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(r * per_rank);
      const auto end = begin + static_cast<std::ptrdiff_t>(per_rank);
      const auto chosen = step > 0 ? std::min_element(begin, end) : std::max_element(begin, end);
      if (step > 0 ? *chosen >= most : *chosen <= 0) continue;
      *chosen += step;
      --remaining;
      progressed = true;
    }
  }
}

/// Rows of each expert in one draw of the tables' power-law generator.
std::vector<std::int64_t> draw_power_law(const MoeLaunch& launch, std::size_t ranks,
                                         std::mt19937_64& engine) {
  const double pairs = launch.tokens * launch.top_k;
  const bool dense = pairs > launch.num_experts;
  const double low = dense ? 1.0 : 0.01;
  const double high = dense ? launch.tokens * 0.8 : 2.0;
  const double a = 1.0 - launch.power_law_alpha;
  const double span_low = std::pow(low, a);
  const double span_high = std::pow(high, a);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::vector<double> share(static_cast<std::size_t>(launch.num_experts));
  double sum = 0.0;
  for (double& x : share) {
    const double u = uniform(engine);
    x = launch.power_law_alpha == 1.0 ? low * std::pow(high / low, u)
                                      : std::pow((span_high - span_low) * u + span_low, 1.0 / a);
    sum += x;
  }
  const auto most = static_cast<std::int64_t>(launch.tokens);
  const auto target = static_cast<std::int64_t>(pairs);
  std::vector<std::int64_t> rows(share.size());
  std::int64_t overflow = 0;
  std::int64_t total = 0;
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const auto wanted = static_cast<std::int64_t>(std::llrint(share[e] / sum * pairs));
    rows[e] = std::min(wanted, most);
    overflow += wanted - rows[e];
  }
  adjust(rows, ranks, overflow, 1, most);
  for (const std::int64_t r : rows) total += r;
  if (total < target) adjust(rows, ranks, target - total, 1, most);
  if (total > target) adjust(rows, ranks, total - target, -1, most);
  return rows;
}

RoutedWork power_law_work(const MoeLaunch& launch) {
  constexpr int kDraws = 16;
  const auto per_rank = static_cast<std::size_t>(launch.local_experts);
  const auto ranks = static_cast<std::size_t>(launch.num_experts) / per_rank;
  std::mt19937_64 engine(20260821);  // any fixed seed; the tables' own draws are not recorded
  RoutedWork work;
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<std::int64_t> rows = draw_power_law(launch, ranks, engine);
    std::size_t heaviest = 0;
    std::int64_t most = -1;
    for (std::size_t r = 0; r < ranks; ++r) {
      std::int64_t load = 0;
      for (std::size_t e = 0; e < per_rank; ++e) load += rows[r * per_rank + e];
      if (load > most) {
        most = load;
        heaviest = r;
      }
    }
    for (std::size_t e = 0; e < per_rank; ++e) {
      add_expert(static_cast<double>(rows[heaviest * per_rank + e]), work, 1.0 / kDraws);
    }
  }
  return work;
}

}  // namespace

double expected_excess_experts(const MoeLaunch& launch) {
  if (launch.waiting_ranks <= 1.0) return 0.0;
  // Expected maximum of 2, 4, 8 standard normals; linear in log2 of the ranks between.
  constexpr std::array<double, 4> kExpectedMaximum{0.0, 0.5642, 1.0294, 1.4236};
  const double depth = std::min(std::log2(launch.waiting_ranks), 3.0);
  const auto below = std::min<std::size_t>(static_cast<std::size_t>(depth), 2);
  const double part = depth - static_cast<double>(below);
  const double c = kExpectedMaximum[below] * (1.0 - part) + kExpectedMaximum[below + 1] * part;
  const double used = expected_distinct_experts(launch);
  const double variance = used * (1.0 - used / launch.local_experts);
  return std::min(c * std::sqrt(variance), launch.local_experts - used);
}

void inclusion_probabilities(std::span<const double> popularity, double top_k,
                             std::span<double> inclusion) {
  const double n = static_cast<double>(popularity.size());
  if (top_k >= n) {
    std::fill(inclusion.begin(), inclusion.end(), 1.0);
    return;
  }
  double sum = 0.0;
  for (const double p : popularity) sum += p;
  // sum(1 - exp(-c p)) is concave and increasing in c: Newton from below never overshoots.
  double c = 0.0;
  for (int iteration = 0; iteration < 200; ++iteration) {
    double value = -top_k;
    double slope = 0.0;
    for (const double p : popularity) {
      const double missed = std::exp(-c * p / sum);
      value += 1.0 - missed;
      slope += missed * p / sum;
    }
    if (value > -1e-12 * top_k) break;
    c -= value / slope;
  }
  for (std::size_t i = 0; i < popularity.size(); ++i) {
    inclusion[i] = -std::expm1(-c * popularity[i] / sum);
  }
}

double expected_distinct_experts(std::span<const double> inclusion, double tokens) {
  double distinct = 0.0;
  for (const double pi : inclusion) distinct += 1.0 - std::pow(1.0 - pi, tokens);
  return distinct;
}

void zipf_popularity(double exponent, std::span<double> popularity) {
  for (std::size_t i = 0; i < popularity.size(); ++i) {
    popularity[i] = std::pow(static_cast<double>(i + 1), -exponent);
  }
}

RoutedWork routed_work(const MoeLaunch& launch) {
  switch (launch.routing) {
    case Routing::kUniform:
      return uniform_work(launch);
    case Routing::kRoundRobin:
      return round_robin_work(launch);
    case Routing::kPowerLaw:
      return power_law_work(launch);
  }
  return {};
}

}  // namespace fulcrum
