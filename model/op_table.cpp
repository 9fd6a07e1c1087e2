#include "model/op_table.h"

#include <algorithm>
#include <cmath>

namespace fulcrum {
namespace {

struct Features {
  LaunchFeatures operator()(const GemmLaunch& g) const { return {g.m, g.n * g.k * g.groups, 0.0}; }
  LaunchFeatures operator()(const MoeLaunch& m) const { return {m.tokens, m.inter, 0.0}; }
  LaunchFeatures operator()(const AttentionLaunch& a) const {
    return {a.tokens, a.heads, a.selected_rows};
  }
  LaunchFeatures operator()(const ContextScanLaunch& s) const {
    return {s.tokens, s.heads, s.keys};
  }
  LaunchFeatures operator()(const MhcLaunch& m) const { return {m.tokens, m.hidden, 0.0}; }
  LaunchFeatures operator()(const ElementwiseLaunch& e) const {
    return {e.tokens, e.bytes_per_token, e.fixed_bytes};
  }
  LaunchFeatures operator()(const CollectiveLaunch& c) const { return {c.bytes, c.ranks, 0.0}; }
};

/// Position on an axis: the interval's lower knot and the share of the upper one, which lies
/// outside [0, 1] beyond the ends.
struct Place {
  std::size_t lower = 0;
  double share = 0.0;
};

Place place_on(const std::vector<double>& knots, double x) {
  if (knots.size() < 2) return {};
  const auto above = std::upper_bound(knots.begin() + 1, knots.end() - 1, x);
  const auto upper = static_cast<std::size_t>(above - knots.begin());
  const double low = std::log1p(knots[upper - 1]);
  return {upper - 1, (std::log1p(x) - low) / (std::log1p(knots[upper]) - low)};
}

/// Linear in `share`; beyond an end the slope per unit of log(1 + x), `width` of them an interval,
/// is held between 0 and 1.
double along(double low, double high, double share, double width) {
  if (share >= 0.0 && share <= 1.0) return low + share * (high - low);
  const double slope = std::clamp(high - low, 0.0, width);
  return share < 0.0 ? low + share * slope : high + (share - 1.0) * slope;
}

}  // namespace

LaunchFeatures launch_features(const Launch& launch) { return std::visit(Features{}, launch); }

double op_table_seconds(const OpTable& table, const Launch& launch) {
  const LaunchFeatures features = launch_features(launch);
  std::array<Place, 3> places;
  std::array<double, 3> widths{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::vector<double>& knots = table.knots[axis];
    places[axis] = place_on(knots, features[axis]);
    if (knots.size() > 1) {
      widths[axis] =
          std::log1p(knots[places[axis].lower + 1]) - std::log1p(knots[places[axis].lower]);
    }
  }
  const auto log_at = [&](std::size_t i, std::size_t j, std::size_t k) {
    return std::log(table.seconds[(i * table.knots[1].size() + j) * table.knots[2].size() + k]);
  };
  const auto over_extent = [&](std::size_t i, std::size_t j) {
    const Place& p = places[2];
    if (table.knots[2].size() < 2) return log_at(i, j, 0);
    return along(log_at(i, j, p.lower), log_at(i, j, p.lower + 1), p.share, widths[2]);
  };
  const auto over_width = [&](std::size_t i) {
    const Place& p = places[1];
    if (table.knots[1].size() < 2) return over_extent(i, 0);
    return along(over_extent(i, p.lower), over_extent(i, p.lower + 1), p.share, widths[1]);
  };
  const Place& p = places[0];
  const double log_seconds =
      table.knots[0].size() < 2
          ? over_width(0)
          : along(over_width(p.lower), over_width(p.lower + 1), p.share, widths[0]);
  return std::exp(log_seconds);
}

}  // namespace fulcrum
