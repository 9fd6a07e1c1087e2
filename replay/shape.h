// A kernel's problem size as named integers, e.g. "m=16,n=4096,k=2048".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fulcrum::replay {

// One allowed dimension of a kernel: inclusive bounds, and a factor that values must be multiples
// of.
struct Dimension {
  std::string name;
  std::string meaning;
  std::int64_t default_value = 1;
  std::int64_t min = 1;
  std::int64_t max = 1;
  std::int64_t multiple = 1;
};

class Shape {
 public:
  Shape() = default;
  explicit Shape(std::vector<std::pair<std::string, std::int64_t>> dims) : dims_(std::move(dims)) {}

  // Throws std::invalid_argument when there is no such dimension: shapes are completed against the
  // kernel's dimensions before a kernel sees them.
  std::int64_t operator[](const std::string& name) const;
  int as_int(const std::string& name) const { return static_cast<int>((*this)[name]); }
  const std::vector<std::pair<std::string, std::int64_t>>& dims() const { return dims_; }
  std::string to_string() const;
  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> dims_;
};

// Parses "name=value,..." in any order, fills what is missing from the defaults and returns the
// dimensions in the kernel's order. Throws std::invalid_argument naming the key, what was found and
// what is allowed.
Shape parse_shape(const std::string& text, std::span<const Dimension> dimensions);

// Splits at ';' and parses each; at least one shape.
std::vector<Shape> parse_shapes(const std::string& text, std::span<const Dimension> dimensions);

}  // namespace fulcrum::replay
