#pragma once

#include <vector>

#include "kernels/attention/sparse_mla.h"

namespace fulcrum::kernels {

// Sparse MLA in double precision over host pointers; problem.out and problem.workspace are not used.
// Returns [tokens, heads, 512]. Both kernels are checked against it.
std::vector<double> sparse_mla_reference(const SparseMlaProblem& problem);

}  // namespace fulcrum::kernels
