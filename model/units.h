// Quantities with units for the cost model: bytes, flop, seconds and their quotients.
//
// A quantity carries its dimension in its type, so adding bytes to seconds or passing a rate where
// a size is meant does not compile. The representation is one double; arithmetic is constexpr and
// free. Decimal and binary prefixes are different literals (GB is 1e9 bytes, GiB is 2^30).
#pragma once

#include <compare>

namespace fulcrum {

/// Quantity of dimension byte^B * flop^F * second^T. Dimensionless results decay to double.
template <int B, int F, int T>
class Quantity {
 public:
  constexpr Quantity() = default;
  /// The value in base units (bytes, flop, seconds).
  constexpr explicit Quantity(double base_value) : value_(base_value) {}
  constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) { return a *= factor; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a *= factor; }
  friend constexpr Quantity operator/(Quantity a, double divisor) {
    return Quantity(a.value_ / divisor);
  }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  double value_ = 0.0;
};

template <int B1, int F1, int T1, int B2, int F2, int T2>
constexpr auto operator*(Quantity<B1, F1, T1> a, Quantity<B2, F2, T2> b) {
  if constexpr (B1 + B2 == 0 && F1 + F2 == 0 && T1 + T2 == 0) {
    return a.value() * b.value();
  } else {
    return Quantity<B1 + B2, F1 + F2, T1 + T2>(a.value() * b.value());
  }
}

template <int B1, int F1, int T1, int B2, int F2, int T2>
constexpr auto operator/(Quantity<B1, F1, T1> a, Quantity<B2, F2, T2> b) {
  if constexpr (B1 == B2 && F1 == F2 && T1 == T2) {
    return a.value() / b.value();
  } else {
    return Quantity<B1 - B2, F1 - F2, T1 - T2>(a.value() / b.value());
  }
}

template <int B, int F, int T>
constexpr auto operator/(double a, Quantity<B, F, T> b) {
  return Quantity<-B, -F, -T>(a / b.value());
}

using Bytes = Quantity<1, 0, 0>;
using Flop = Quantity<0, 1, 0>;
using Seconds = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, 0, -1>;
using FlopPerSecond = Quantity<0, 1, -1>;
using FlopPerByte = Quantity<-1, 1, 0>;
using Hertz = Quantity<0, 0, -1>;

inline namespace literals {
#define FULCRUM_UNIT(type, suffix, scale)                    \
  constexpr type operator""_##suffix(long double v) {        \
    return type(static_cast<double>(v) * (scale));           \
  }                                                          \
  constexpr type operator""_##suffix(unsigned long long v) { \
    return type(static_cast<double>(v) * (scale));           \
  }
FULCRUM_UNIT(Bytes, B, 1.0)
FULCRUM_UNIT(Bytes, kB, 1e3)
FULCRUM_UNIT(Bytes, MB, 1e6)
FULCRUM_UNIT(Bytes, GB, 1e9)
FULCRUM_UNIT(Bytes, KiB, 1024.0)
FULCRUM_UNIT(Bytes, MiB, 1024.0 * 1024.0)
FULCRUM_UNIT(Bytes, GiB, 1024.0 * 1024.0 * 1024.0)
FULCRUM_UNIT(Flop, flop, 1.0)
FULCRUM_UNIT(Flop, Gflop, 1e9)
FULCRUM_UNIT(Seconds, s, 1.0)
FULCRUM_UNIT(Seconds, ms, 1e-3)
FULCRUM_UNIT(Seconds, us, 1e-6)
FULCRUM_UNIT(Seconds, ns, 1e-9)
FULCRUM_UNIT(BytesPerSecond, GBps, 1e9)
FULCRUM_UNIT(FlopPerSecond, Tflops, 1e12)
FULCRUM_UNIT(Hertz, MHz, 1e6)
#undef FULCRUM_UNIT
}  // namespace literals

}  // namespace fulcrum
