// Host references of kernels/elementwise: the same problems with host pointers. The problems'
// outputs are not written unless said so.
#pragma once

#include <vector>

#include "kernels/elementwise/elementwise.h"

namespace fulcrum::kernels {

// [rows, dim] in double precision.
std::vector<double> rms_norm_reference(const RmsNormProblem& problem);

// [tokens, heads, 512] in double precision.
std::vector<double> query_norm_rope_reference(const QueryNormRopeProblem& problem);

// [tokens, heads, 512]: the rotated values of `problem.heads`, which stays as it is.
std::vector<double> inverse_rope_reference(const InverseRopeProblem& problem);

// [tokens, 512] before quantisation, in double precision.
std::vector<double> kv_store_reference(const KvStoreProblem& problem);

// The largest error that storing `value` in a row may make: half an ulp of E4M3 under the group's
// scale (an ulp is 2^-3 of the power of two below the code, 2^-9 below 2^-6) or of BF16 for the
// rotary part. `group_largest` is the largest magnitude of the value's group of 64.
double kv_row_rounding_bound(int dim, double value, double group_largest);

// Writes problem.codes and problem.scales or problem.scales_e8m0: the quantiser is defined by its
// binary32 operations, so the kernel must agree bit by bit.
void group_quantize_reference(const GroupQuantizeProblem& problem);

// [rows, width] in double precision.
std::vector<double> swiglu_reference(const SwigluProblem& problem);

}  // namespace fulcrum::kernels
