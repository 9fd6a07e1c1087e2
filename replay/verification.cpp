#include "replay/verification.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "kernels/common/formats.h"

namespace fulcrum::replay {
namespace {

std::string describe(const std::string& what, std::size_t index, double output, double reference,
                     double bound) {
  char text[160];
  std::snprintf(text, sizeof text, "%s[%zu]: %.9g, reference %.9g, allowed error %.3g",
                what.c_str(), index, output, reference, bound);
  return text;
}

template <typename Decode>
Verification compare_decoded(std::size_t size, Decode decode, std::span<const double> reference,
                             std::span<const double> magnitude, Tolerance tolerance,
                             const std::string& what) {
  if (reference.size() != size || (!magnitude.empty() && magnitude.size() != size)) {
    throw std::invalid_argument("compare: '" + what + "' and its reference differ in length");
  }
  Verification result;
  result.num_elements = static_cast<std::int64_t>(size);
  double error_squares = 0;
  double reference_squares = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double output = decode(i);
    const double error = std::abs(output - reference[i]);
    const double bound = tolerance.relative * std::abs(reference[i]) + tolerance.absolute +
                         (magnitude.empty() ? 0.0 : tolerance.of_magnitude * magnitude[i]);
    const bool ok = error <= bound;  // False for NaN.
    if (!ok) ++result.num_failed;
    const double ratio = std::isnan(error) ? std::numeric_limits<double>::infinity()
                         : error == 0      ? 0
                         : bound > 0       ? error / bound
                                           : std::numeric_limits<double>::infinity();
    if (ratio > result.worst_ratio) {
      result.worst_ratio = ratio;
      result.worst = describe(what, i, output, reference[i], bound);
    }
    error_squares += std::isnan(error) ? 0 : error * error;
    reference_squares += reference[i] * reference[i];
  }
  result.relative_norm = reference_squares > 0 ? std::sqrt(error_squares / reference_squares) : 0;
  return result;
}

}  // namespace

Verification compare(std::span<const float> output, std::span<const double> reference,
                     std::span<const double> magnitude, Tolerance tolerance,
                     const std::string& what) {
  return compare_decoded(
      output.size(), [&](std::size_t i) { return static_cast<double>(output[i]); }, reference,
      magnitude, tolerance, what);
}

Verification compare_bf16(std::span<const std::uint16_t> output, std::span<const double> reference,
                          std::span<const double> magnitude, Tolerance tolerance,
                          const std::string& what) {
  return compare_decoded(
      output.size(),
      [&](std::size_t i) { return static_cast<double>(kernels::decode_bf16(output[i])); },
      reference, magnitude, tolerance, what);
}

Verification compare_exact(std::span<const std::int32_t> output,
                           std::span<const std::int32_t> reference, const std::string& what) {
  if (output.size() != reference.size()) {
    throw std::invalid_argument("compare_exact: '" + what + "' and its reference differ in length");
  }
  Verification result;
  result.num_elements = static_cast<std::int64_t>(output.size());
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (output[i] == reference[i]) continue;
    if (result.num_failed++ == 0) {
      result.worst = describe(what, i, output[i], reference[i], 0);
      result.worst_ratio = std::numeric_limits<double>::infinity();
    }
  }
  return result;
}

Verification merge(const Verification& a, const Verification& b) {
  Verification result = a.worst_ratio >= b.worst_ratio ? a : b;
  result.num_elements = a.num_elements + b.num_elements;
  result.num_failed = a.num_failed + b.num_failed;
  result.relative_norm = std::max(a.relative_norm, b.relative_norm);
  return result;
}

}  // namespace fulcrum::replay
