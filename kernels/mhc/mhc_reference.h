// Host references of kernels/mhc in double precision, over host pointers. The problems' outputs are
// not written.
#pragma once

#include <array>
#include <vector>

#include "kernels/mhc/mhc.h"

namespace fulcrum::kernels {

// Row softmax + epsilon, then num_iterations normalisations of the columns with one of the rows
// between each two; every sum has epsilon added. Row-major 4x4.
std::array<double, 16> sinkhorn_reference(std::array<double, 16> logits, int num_iterations,
                                          double epsilon);

struct MhcPreReference {
  std::vector<double> out;            // [tokens, hidden]
  std::vector<double> out_magnitude;  // [tokens, hidden], what `out` was summed from
  std::vector<double> post;           // [tokens, 4]
  std::vector<double> comb;           // [tokens, 4, 4]
};
MhcPreReference mhc_pre_reference(const MhcPreProblem& problem);

struct MhcPostReference {
  std::vector<double> out;        // [tokens, 4, hidden]
  std::vector<double> magnitude;  // sum of |products|
};
MhcPostReference mhc_post_reference(const MhcPostProblem& problem);

}  // namespace fulcrum::kernels
