// Comparing a kernel's outputs with its host reference, element by element.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fulcrum::replay {

// |output - reference| <= relative * |reference| + of_magnitude * magnitude + absolute, where
// magnitude is the sum of absolute products that the element was accumulated from: cancellation
// makes an error relative to the result unbounded, but not one relative to what was added up.
struct Tolerance {
  double relative = 0;
  double of_magnitude = 0;
  double absolute = 0;
};

// Output rounded to BF16 (half an ulp is 2^-9 of the value), accumulated in binary32. Tensor cores
// truncate inside one instruction's sum, hence 2^-18 of the magnitude instead of a few 2^-24.
inline constexpr Tolerance kBf16Output{0x1p-8, 0x1p-18, 1e-30};
inline constexpr Tolerance kFloatOutput{0x1p-20, 0x1p-18, 1e-30};
inline constexpr Tolerance kExact{0, 0, 0};

struct Verification {
  std::int64_t num_elements = 0;
  std::int64_t num_failed = 0;
  double worst_ratio =
      0;  // Largest error over its tolerance; infinite for NaN and unwritten outputs.
  double relative_norm = 0;  // ||output - reference|| / ||reference||.
  std::string worst;         // Where and by how much, empty when every element is exact.
  bool passed() const { return num_elements > 0 && num_failed == 0; }
};

// Spans of equal length; `magnitude` may be empty (taken as 0). Throws std::invalid_argument
// otherwise.
Verification compare(std::span<const float> output, std::span<const double> reference,
                     std::span<const double> magnitude, Tolerance tolerance,
                     const std::string& what);
Verification compare_bf16(std::span<const std::uint16_t> output, std::span<const double> reference,
                          std::span<const double> magnitude, Tolerance tolerance,
                          const std::string& what);
// For outputs that must agree bit by bit (indices, codes).
Verification compare_exact(std::span<const std::int32_t> output,
                           std::span<const std::int32_t> reference, const std::string& what);

// Both outputs of one kernel as one verdict.
Verification merge(const Verification& a, const Verification& b);

}  // namespace fulcrum::replay
