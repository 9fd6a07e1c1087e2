#pragma once

#include <vector>

#include "kernels/attention/sparse_mla.h"

namespace fulcrum::kernels {

struct SparseMlaReference {
  std::vector<double> out;        // [tokens, heads, 512]
  std::vector<double> magnitude;  // the same with |kv| for kv: what an output was summed from
};

// Sparse MLA in double precision over host pointers; problem.out and problem.workspace are not
// used. Both kernels are checked against it.
SparseMlaReference sparse_mla_reference(const SparseMlaProblem& problem);

}  // namespace fulcrum::kernels
