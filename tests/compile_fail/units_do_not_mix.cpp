// What the unit types must refuse. Each case is compiled alone; without a case the file compiles.
#include "model/units.h"

namespace fulcrum {

constexpr Bytes kWeights = 4.0_GB;
constexpr Flop kWork = 2.0_Gflop;
constexpr Seconds kStep = 10.0_ms;
constexpr BytesPerSecond kBandwidth = 1792.0_GBps;

// The control: right uses of the same quantities.
constexpr Seconds kRead = kWeights / kBandwidth;
constexpr Seconds kTotal = kStep + 2.0 * kRead;
constexpr FlopPerSecond kRate = kWork / kTotal;
constexpr FlopPerByte kIntensity = kWork / kWeights;
constexpr double kRatio = kRead / kTotal;
constexpr Seconds kFromBase = Seconds(0.25);
static_assert(kTotal > kStep && kRatio < 1.0 && kFromBase.value() == 0.25);
static_assert(kRate.value() > 0.0 && kIntensity.value() == 0.5);
constexpr Seconds time_to_read(Bytes size, BytesPerSecond rate) { return size / rate; }
static_assert(time_to_read(kWeights, kBandwidth) == kRead);

// EXPECT bytes_plus_seconds: no match for .operator\+
#ifdef CASE_bytes_plus_seconds
constexpr auto kWrong = kWeights + kStep;
#endif

// EXPECT bytes_minus_flop: no match for .operator-
#ifdef CASE_bytes_minus_flop
constexpr auto kWrong = kWeights - kWork;
#endif

// EXPECT quantity_plus_number: no match for .operator\+
#ifdef CASE_quantity_plus_number
constexpr auto kWrong = kStep + 1.0;
#endif

// EXPECT implicit_from_double: conversion from .double. to non-scalar type
#ifdef CASE_implicit_from_double
constexpr Seconds kWrong = 0.25;
#endif

// EXPECT implicit_to_double: cannot convert .const fulcrum::.* to .const double.
#ifdef CASE_implicit_to_double
constexpr double kWrong = kStep;
#endif

// EXPECT number_as_argument: could not convert .4.0e\+9. from .double. to .fulcrum::
#ifdef CASE_number_as_argument
constexpr Seconds kWrong = time_to_read(4.0e+9, kBandwidth);
#endif

// EXPECT arguments_swapped: could not convert .fulcrum::kBandwidth
#ifdef CASE_arguments_swapped
constexpr Seconds kWrong = time_to_read(kBandwidth, kWeights);
#endif

// EXPECT rate_where_a_time_is_meant: conversion from .* to non-scalar type
#ifdef CASE_rate_where_a_time_is_meant
constexpr Seconds kWrong = kBandwidth / kWeights;
#endif

// EXPECT comparing_bytes_with_flop: no match for .operator<
#ifdef CASE_comparing_bytes_with_flop
constexpr bool kWrong = kWeights < kWork;
#endif

// EXPECT product_of_times_is_no_time: conversion from .* to non-scalar type
#ifdef CASE_product_of_times_is_no_time
constexpr Seconds kWrong = kStep * kStep;
#endif

// EXPECT accumulating_another_unit: no match for .operator\+=
#ifdef CASE_accumulating_another_unit
constexpr Bytes accumulate(Bytes total) { return total += kStep; }
#endif

}  // namespace fulcrum
