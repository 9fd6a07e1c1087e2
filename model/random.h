// Random numbers that are the same on every platform, which std distributions are not.
#pragma once

#include <cmath>
#include <cstdint>

namespace fulcrum {

/// splitmix64: small, fast, the same on every platform (std distributions are not).
/// Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
  }
  double exponential(double rate) { return -std::log1p(-uniform()) / rate; }

 private:
  std::uint64_t state_;
};

}  // namespace fulcrum
