#include "model/speculation.h"

#include <algorithm>
#include <cmath>

#include "model/interval.h"

namespace fulcrum {

double accept_length(std::span<const double> acceptance) {
  double length = 1.0;
  double reach = 1.0;
  for (double a : acceptance) {
    reach *= a;
    length += reach;
  }
  return length;
}

double accept_length_log_sigma(std::span<const double> acceptance, double standard_error) {
  // d(reach_i) / d(all a) by the product rule, carried along with the reach itself.
  double reach = 1.0;
  double reach_slope = 0.0;
  double slope = 0.0;
  for (double a : acceptance) {
    reach_slope = reach_slope * a + reach;
    reach *= a;
    slope += reach_slope;
  }
  const double length = accept_length(acceptance);
  // The length stays between one token and all of them: the wider side bounds a 90 % interval.
  const double most = 1.0 + static_cast<double>(acceptance.size());
  const double room = std::max(std::log(most / length), std::log(length));
  return std::min(standard_error * slope / length, room / kNormalP95);
}

double accepted_drafts_variance(std::span<const double> acceptance) {
  double mean = 0.0;
  double second_moment = 0.0;
  double reach = 1.0;
  double weight = 1.0;
  for (double a : acceptance) {
    reach *= a;
    mean += reach;
    second_moment += weight * reach;
    weight += 2.0;
  }
  return second_moment - mean * mean;
}

}  // namespace fulcrum
