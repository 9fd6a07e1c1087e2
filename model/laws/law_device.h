// What a cost law may know about a GPU: plain numbers in base units, copied from the hardware file.
#pragma once

#include <array>
#include <cstddef>

namespace fulcrum {

/// Operand formats that have their own peak rate.
enum class NumberFormat { kFp32, kTf32, kBf16, kFp8, kFp4 };
inline constexpr std::size_t kNumNumberFormats = 5;

/// Bits a stored element takes, without scales.
constexpr double bits_of(NumberFormat format) {
  constexpr std::array<double, kNumNumberFormats> kBits{32.0, 32.0, 16.0, 8.0, 4.0};
  return kBits[static_cast<std::size_t>(format)];
}

/// Device figures in base units (bytes, flop, seconds, hertz). Peaks are dense; a format the device
/// has no unit for holds the rate of the unit that would do the work instead.
struct LawDevice {
  double num_sms = 0.0;
  double sm_clock_hertz = 0.0;
  double dram_bandwidth_bytes_per_second = 0.0;  ///< datasheet peak
  double l2_bytes = 0.0;
  std::array<double, kNumNumberFormats> peak_flop_per_second{};  ///< by NumberFormat
  /// Peer link, per GPU and direction; 0 where the device has one GPU only.
  double link_bandwidth_bytes_per_second = 0.0;

  double peak(NumberFormat format) const {
    return peak_flop_per_second[static_cast<std::size_t>(format)];
  }
};

}  // namespace fulcrum
