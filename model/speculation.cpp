#include "model/speculation.h"

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
