// Host references of kernels/indexer over host pointers, in double precision. The problems' outputs
// are not written.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernels/indexer/compressor.h"
#include "kernels/indexer/indexer.h"

namespace fulcrum::kernels {

using IndexRow = std::array<double, kIndexDim>;

// The orthonormal Hadamard matrix of order 128 (Sylvester order) times `values`.
IndexRow hadamard_reference(const IndexRow& values);

// Values of an index row in host memory.
IndexRow decode_index_row(const IndexPool& pool, std::int32_t row);

struct IndexLogitsReference {
  std::vector<double> logits;     // [tokens, max_keys]; 0 from key_counts on
  std::vector<double> magnitude;  // what a logit was summed from, absolute values
};
IndexLogitsReference index_logits_reference(const IndexLogitsProblem& problem);

// The problem's contract as a check: nullopt when `indices` [tokens, top_k] is a right answer, else
// why not.
std::optional<std::string> top_k_violation(const TopKProblem& problem, const std::int32_t* indices);

// [tokens, 64, 128] before quantisation.
std::vector<double> index_query_reference(const IndexQueryProblem& problem);

// The row that token `token` of `request` closes, before quantisation; nullopt when it closes none.
// `problem` holds the rings as they were before the launch.
std::optional<std::vector<double>> compressor_reference(const CompressorProblem& problem,
                                                        int request, int token);

}  // namespace fulcrum::kernels
