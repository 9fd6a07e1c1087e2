// What a kernel family tells the fitter: which series it explains, its parameters, how a record
// becomes a launch, which rows share a shape and which lie outside the usual range.
//
// To add a family: write the law in model/laws as a template on Real, the adapter in
// calibrate/families/NAME.{h,cpp} returning a `const Family&`, and one line in families.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/jet.h"
#include "calibrate/record.h"
#include "model/laws/law_device.h"
#include "model/laws/parameter_info.h"

namespace fulcrum::calibrate {

/// Indices into the records a law was bound to.
using RowIndices = std::span<const std::uint32_t>;

/// A law with its launches and device fixed: parameters -> seconds. Thread-safe, pure.
struct BoundLaw {
  std::size_t num_parameters = 0;
  std::size_t num_rows = 0;
  /// seconds[i] = time of row rows[i].
  std::function<void(std::span<const double> parameters, RowIndices rows,
                     std::span<double> seconds)>
      evaluate;
  /// Same, and gradient[i * num_parameters + j] = d seconds[i] / d parameters[j].
  std::function<void(std::span<const double> parameters, RowIndices rows, std::span<double> seconds,
                     std::span<double> gradient)>
      evaluate_with_gradient;
  /// Where a row lies for a learned correction (model/laws/log_correction.h); none: 0.
  std::size_t num_features = 0;
  std::vector<double> features;  ///< [num_rows, num_features]
  /// Sizes beyond whose largest fitted value a prediction extrapolates.
  std::size_t num_reach = 0;
  std::vector<double> reach;  ///< [num_rows, num_reach]
};

/// Features of every row, [rows, N]: `features_of(row)` returns an array of N numbers.
template <std::size_t N, class Rows, class Features>
std::vector<double> feature_table(const Rows& rows, Features features_of) {
  std::vector<double> table;
  table.reserve(rows.size() * N);
  for (const auto& row : rows) {
    const std::array<double, N> f = features_of(row);
    table.insert(table.end(), f.begin(), f.end());
  }
  return table;
}

template <std::size_t N>
BoundLaw with_features(BoundLaw law, std::vector<double> table) {
  law.num_features = N;
  law.features = std::move(table);
  return law;
}

/// `table` holds the N sizes of every row that mark how far measurements reach.
template <std::size_t N>
BoundLaw with_reach(BoundLaw law, std::vector<double> table) {
  law.num_reach = N;
  law.reach = std::move(table);
  return law;
}

/// Binds a law in two steps, so that what depends on the parameters alone is done once per call and
/// not once per row: `prepare(std::span<const Real, N> parameters) -> Prepared` and
/// `law(const Prepared&, const Launch&) -> Real` (seconds), both callable with Real = double and
/// Real = Jet<N>. They capture the device and all structure that is not fitted.
template <std::size_t N, class Launch, class Prepare, class Law>
BoundLaw bind_prepared_law(std::vector<Launch> launches, Prepare prepare, Law law) {
  struct State {
    std::vector<Launch> launches;
    Prepare prepare;
    Law law;
  };
  auto state =
      std::make_shared<const State>(State{std::move(launches), std::move(prepare), std::move(law)});
  BoundLaw bound;
  bound.num_parameters = N;
  bound.num_rows = state->launches.size();
  bound.evaluate = [state](std::span<const double> parameters, RowIndices rows,
                           std::span<double> seconds) {
    const auto prepared = state->prepare(std::span<const double, N>(parameters.data(), N));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      seconds[i] = state->law(prepared, state->launches[rows[i]]);
    }
  };
  bound.evaluate_with_gradient = [state](std::span<const double> parameters, RowIndices rows,
                                         std::span<double> seconds, std::span<double> gradient) {
    std::array<Jet<N>, N> p;
    for (std::size_t j = 0; j < N; ++j) p[j] = Jet<N>::variable(parameters[j], j);
    const auto prepared = state->prepare(std::span<const Jet<N>, N>(p));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Jet<N> t = state->law(prepared, state->launches[rows[i]]);
      seconds[i] = t.value;
      std::copy(t.gradient.begin(), t.gradient.end(), gradient.begin() + i * N);
    }
  };
  return bound;
}

/// Binds a law in one step: `law(std::span<const Real, N> parameters, const Launch&) -> Real`.
template <std::size_t N, class Launch, class Law>
BoundLaw bind_law(std::vector<Launch> launches, Law law) {
  return bind_prepared_law<N>(
      std::move(launches), [](auto parameters) { return parameters; }, std::move(law));
}

/// One kernel family. Plain function pointers: a family has no state.
struct Family {
  std::string_view name;  ///< e.g. "gemm"
  /// True if this family has a law for the series.
  bool (*explains)(const SeriesKey& key) = nullptr;
  /// Parameters for the series; the same order as the law takes them. A parameter with
  /// lower == upper is held fixed. Positive lower bound: fitted on a log scale; else linear.
  std::vector<ParameterInfo> (*parameters)(const SeriesKey& key, const LawDevice& device) = nullptr;
  /// Turns the records of the series into launches and fixes device and structure.
  BoundLaw (*bind)(const SeriesKey& key, const LawDevice& device,
                   std::span<const Record> records) = nullptr;
  /// Rows with equal text are held out together (the weights' shape, not the batch).
  std::string (*shape_group)(const Record& record) = nullptr;
  /// frontier[i]: row i lies outside what a user would measure first (largest batches, TP8, longest
  /// contexts); such rows are never fitted when the report extrapolates.
  std::vector<bool> (*frontier)(std::span<const Record> records) = nullptr;
  /// Series that share one parameter set map to one key; null: every key is its own.
  SeriesKey (*pooled)(const SeriesKey& key) = nullptr;
  /// Factor for parameter `index` when moved from one device to another; null: by
  /// ParameterInfo::transfer, rates scaled with the DRAM bandwidths.
  double (*transfer_scale)(const SeriesKey& key, std::size_t index, const LawDevice& from,
                           const LawDevice& to) = nullptr;
};

/// All families, in the order they are asked (families.cpp).
std::span<const Family* const> families();

/// The family that explains the series, or null.
const Family* find_family(const SeriesKey& key);

}  // namespace fulcrum::calibrate
