// Host references of kernels/head over host pointers, in double precision. The problems' outputs
// are not written.
#pragma once

#include <vector>

#include "kernels/head/head_gemv.h"
#include "kernels/head/sampling.h"

namespace fulcrum::kernels {

struct HeadGemvReference {
  std::vector<double> out;        // [tokens, rows]
  std::vector<double> magnitude;  // [tokens, rows], sum of |products|
};
HeadGemvReference head_gemv_reference(const HeadGemvProblem& problem);

// [tokens, vocab]: the score whose argmax is sampled, from the same random words as the kernel.
std::vector<double> sampling_scores_reference(const SamplingProblem& problem);

}  // namespace fulcrum::kernels
