#include "kernels/indexer/indexer_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "kernels/common/formats.h"
#include "kernels/common/parallel.h"

namespace fulcrum::kernels {
namespace {

void rotate(double* values, const float* cos_sin) {
  for (int p = 0; p < kIndexRopeValues / 2; ++p) {
    const double c = cos_sin[2 * p];
    const double s = cos_sin[2 * p + 1];
    const double re = values[2 * p];
    const double im = values[2 * p + 1];
    values[2 * p] = re * c - im * s;
    values[2 * p + 1] = re * s + im * c;
  }
}

const float* position_pairs(const float* cos_sin, std::int64_t position) {
  return cos_sin + position * kIndexRopeValues;
}

}  // namespace

IndexRow hadamard_reference(const IndexRow& values) {
  IndexRow out{};
  for (unsigned i = 0; i < kIndexDim; ++i) {
    for (unsigned j = 0; j < kIndexDim; ++j) {
      out[i] += (std::popcount(i & j) % 2 == 0 ? 1.0 : -1.0) * values[j];
    }
    out[i] /= std::sqrt(static_cast<double>(kIndexDim));
  }
  return out;
}

IndexRow decode_index_row(const IndexPool& pool, std::int32_t row) {
  float scale = 0.0F;
  std::memcpy(&scale, pool.pages + index_scale_offset(pool, row), sizeof(scale));
  const std::uint8_t* codes = pool.pages + index_code_offset(pool, row);
  IndexRow values{};
  for (int d = 0; d < kIndexDim; ++d)
    values[d] = static_cast<double>(decode_e4m3(codes[d])) * scale;
  return values;
}

IndexLogitsReference index_logits_reference(const IndexLogitsProblem& problem) {
  const std::size_t size = static_cast<std::size_t>(problem.num_tokens) * problem.max_keys;
  IndexLogitsReference result{std::vector<double>(size), std::vector<double>(size)};
  const int pages_per_token = problem.max_keys / kIndexPageRows;
  for (std::int64_t token = 0; token < problem.num_tokens; ++token) {
    std::array<IndexRow, kIndexHeads> query{};
    for (int h = 0; h < kIndexHeads; ++h) {
      for (int d = 0; d < kIndexDim; ++d) {
        query[h][d] = decode_e4m3(problem.query[(token * kIndexHeads + h) * kIndexDim + d]);
      }
    }
    parallel_for(std::min(problem.key_counts[token], problem.max_keys), [&](std::int64_t j) {
      const std::int32_t page = problem.page_table[token * pages_per_token + j / kIndexPageRows];
      const IndexRow key = decode_index_row(
          problem.pool, page * kIndexPageRows + static_cast<std::int32_t>(j % kIndexPageRows));
      double logit = 0.0;
      double magnitude = 0.0;
      for (int h = 0; h < kIndexHeads; ++h) {
        double dot = 0.0;
        double absolute = 0.0;
        for (int d = 0; d < kIndexDim; ++d) {
          dot += query[h][d] * key[d];
          absolute += std::fabs(query[h][d] * key[d]);
        }
        const double weight = problem.weights[token * kIndexHeads + h];
        logit += weight * std::max(dot, 0.0);
        magnitude += std::fabs(weight) * absolute;
      }
      result.logits[token * problem.max_keys + j] = logit;
      result.magnitude[token * problem.max_keys + j] = magnitude;
    });
  }
  return result;
}

std::optional<std::string> top_k_violation(const TopKProblem& problem,
                                           const std::int32_t* indices) {
  for (std::int64_t token = 0; token < problem.num_tokens; ++token) {
    const int count = std::min(problem.key_counts[token], problem.max_keys);
    const float* row = problem.logits + token * problem.max_keys;
    std::vector<bool> kept(count, false);
    int num_kept = 0;
    float smallest_kept = std::numeric_limits<float>::infinity();
    for (int i = 0; i < problem.top_k; ++i) {
      const std::int32_t index = indices[token * problem.top_k + i];
      if (index == -1 && i >= count) continue;
      const std::string where = "token " + std::to_string(token) + ", place " + std::to_string(i) +
                                ": " + std::to_string(index);
      if (index < 0 || index >= count) return where + " is no key";
      if (kept[index]) return where + " is given twice";
      kept[index] = true;
      ++num_kept;
      smallest_kept = std::min(smallest_kept, row[index]);
    }
    if (num_kept != std::min(count, problem.top_k)) {
      return "token " + std::to_string(token) + " keeps " + std::to_string(num_kept) + " keys";
    }
    for (int j = 0; j < count; ++j) {
      if (!kept[j] && row[j] > smallest_kept) {
        return "token " + std::to_string(token) + ": key " + std::to_string(j) +
               " is larger than one kept";
      }
    }
  }
  return std::nullopt;
}

std::vector<double> index_query_reference(const IndexQueryProblem& problem) {
  const std::int64_t heads = std::int64_t{problem.num_tokens} * kIndexHeads;
  std::vector<double> out(static_cast<std::size_t>(heads) * kIndexDim);
  parallel_for(heads, [&](std::int64_t head) {
    IndexRow values{};
    for (int d = 0; d < kIndexDim; ++d) values[d] = decode_bf16(problem.in[head * kIndexDim + d]);
    rotate(values.data() + kIndexDim - kIndexRopeValues,
           position_pairs(problem.rope.cos_sin, problem.rope.positions[head / kIndexHeads]));
    values = hadamard_reference(values);
    std::copy(values.begin(), values.end(), out.begin() + head * kIndexDim);
  });
  return out;
}

std::optional<std::vector<double>> compressor_reference(const CompressorProblem& problem,
                                                        int request, int token) {
  const CompressorShape& shape = problem.shape;
  const int dim = compressor_dim(shape.kind);
  const int width = compressor_width(shape);
  const int halves = shape.overlap ? 2 : 1;
  const int first = problem.first_positions[request];
  const int position = first + token;
  if ((position + 1) % shape.ratio != 0) return std::nullopt;

  // Value and score of a position, from this launch's tokens or from the ring.
  const auto at = [&](int p, int column) -> std::array<double, 2> {
    if (p >= first) {
      const float* projected =
          problem.projected +
          (std::int64_t{request} * shape.tokens_per_request + (p - first)) * 2 * width;
      return {projected[column], static_cast<double>(projected[width + column]) +
                                     problem.ape[(p % shape.ratio) * width + column]};
    }
    const std::int64_t slot =
        (std::int64_t{problem.state_slots[request]} * shape.ring_rows + p % shape.ring_rows) *
            width +
        column;
    return {problem.value_ring[slot], problem.score_ring[slot]};
  };
  std::vector<double> row(dim);
  double squares = 0.0;
  for (int d = 0; d < dim; ++d) {
    std::vector<std::array<double, 2>> pooled;
    for (int p = std::max(0, position + 1 - halves * shape.ratio); p <= position; ++p) {
      const bool own_group = p > position - shape.ratio;
      pooled.push_back(at(p, d + (shape.overlap && own_group ? dim : 0)));
    }
    double largest = -std::numeric_limits<double>::infinity();
    for (const auto& entry : pooled) largest = std::max(largest, entry[1]);
    double weight = 0.0;
    for (const auto& entry : pooled) {
      row[d] += std::exp(entry[1] - largest) * entry[0];
      weight += std::exp(entry[1] - largest);
    }
    row[d] /= weight;
    squares += row[d] * row[d];
  }
  const double scale = 1.0 / std::sqrt(squares / dim + problem.epsilon);
  for (int d = 0; d < dim; ++d) row[d] *= scale * decode_bf16(problem.norm_weight[d]);
  rotate(row.data() + dim - kIndexRopeValues,
         position_pairs(problem.cos_sin, position + 1 - shape.ratio));
  if (shape.kind == CompressedRow::kIndexKey) {
    IndexRow values{};
    std::copy(row.begin(), row.end(), values.begin());
    values = hadamard_reference(values);
    std::copy(values.begin(), values.end(), row.begin());
  }
  return row;
}

}  // namespace fulcrum::kernels
