#include "kernels/attention/sparse_mla_reference.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/kv_row_reference.h"
#include "kernels/common/formats.h"
#include "kernels/common/parallel.h"

namespace fulcrum::kernels {
namespace {

using Row = std::array<double, kKvHeadDim>;

void append_rows(const KvPool& pool, const std::int32_t* slots, int count, std::vector<Row>* rows) {
  for (int i = 0; i < count; ++i) {
    if (slots[i] >= 0) rows->push_back(decode_kv_row(pool, slots[i]));
  }
}

void attend(const SparseMlaProblem& problem, const std::vector<Row>& rows, std::int64_t token_head,
            double sink, double* out, double* magnitude) {
  const std::uint16_t* query = problem.query + token_head * kKvHeadDim;
  std::vector<double> scores(rows.size());
  double largest = sink;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double dot = 0.0;
    for (int d = 0; d < kKvHeadDim; ++d) dot += decode_bf16(query[d]) * rows[r][d];
    scores[r] = dot * problem.softmax_scale;
    largest = std::max(largest, scores[r]);
  }
  if (std::isinf(largest)) return;
  double denominator = std::exp(sink - largest);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double weight = std::exp(scores[r] - largest);
    denominator += weight;
    for (int d = 0; d < kKvHeadDim; ++d) {
      out[d] += weight * rows[r][d];
      magnitude[d] += weight * std::fabs(rows[r][d]);
    }
  }
  for (int d = 0; d < kKvHeadDim; ++d) {
    out[d] /= denominator;
    magnitude[d] /= denominator;
  }
}

}  // namespace

SparseMlaReference sparse_mla_reference(const SparseMlaProblem& problem) {
  const SparseMlaShape& shape = problem.shape;
  const std::size_t size =
      static_cast<std::size_t>(shape.num_tokens) * shape.num_heads * kKvHeadDim;
  SparseMlaReference result{std::vector<double>(size), std::vector<double>(size)};
  parallel_for(shape.num_tokens, [&](std::int64_t token) {
    std::vector<Row> rows;
    append_rows(problem.window, problem.window_rows + token * shape.window_width,
                std::min(problem.window_counts[token], shape.window_width), &rows);
    append_rows(problem.compressed, problem.compressed_rows + token * shape.compressed_width,
                std::min(problem.compressed_counts[token], shape.compressed_width), &rows);
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      const std::int64_t token_head = token * shape.num_heads + head;
      attend(problem, rows, token_head, problem.sink[head],
             result.out.data() + token_head * kKvHeadDim,
             result.magnitude.data() + token_head * kKvHeadDim);
    }
  });
  return result;
}

}  // namespace fulcrum::kernels
