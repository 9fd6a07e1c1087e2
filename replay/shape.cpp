#include "replay/shape.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

namespace fulcrum::replay {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string allowed(const Dimension& d) {
  std::string text = std::to_string(d.min) + ".." + std::to_string(d.max);
  if (d.multiple > 1) text += " in multiples of " + std::to_string(d.multiple);
  return text;
}

std::string names(std::span<const Dimension> dimensions) {
  std::string text;
  for (const Dimension& d : dimensions) text += (text.empty() ? "" : ", ") + d.name;
  return text;
}

}  // namespace

std::int64_t Shape::operator[](const std::string& name) const {
  for (const auto& [key, value] : dims_) {
    if (key == name) return value;
  }
  throw std::invalid_argument("shape '" + to_string() + "' has no dimension '" + name + "'");
}

std::string Shape::to_string() const {
  std::string text;
  for (const auto& [key, value] : dims_) {
    text += (text.empty() ? "" : ",") + key + "=" + std::to_string(value);
  }
  return text;
}

Shape parse_shape(const std::string& text, std::span<const Dimension> dimensions) {
  std::vector<std::optional<std::int64_t>> values(dimensions.size());
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      throw std::invalid_argument("shape '" + text + "': found '" + part +
                                  "', expected name=value");
    }
    const std::string name = part.substr(0, equals);
    const std::string digits = part.substr(equals + 1);
    const auto found =
        std::ranges::find_if(dimensions, [&](const Dimension& d) { return d.name == name; });
    if (found == dimensions.end()) {
      throw std::invalid_argument("shape '" + text + "': unknown dimension '" + name +
                                  "', allowed: " + names(dimensions));
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < found->min ||
        value > found->max || value % found->multiple != 0) {
      throw std::invalid_argument("shape '" + text + "': " + name + "=" + digits +
                                  ", allowed: " + allowed(*found));
    }
    auto& slot = values[static_cast<std::size_t>(found - dimensions.begin())];
    if (slot) throw std::invalid_argument("shape '" + text + "': " + name + " is given twice");
    slot = value;
  }
  std::vector<std::pair<std::string, std::int64_t>> dims;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    dims.emplace_back(dimensions[i].name, values[i].value_or(dimensions[i].default_value));
  }
  return Shape(std::move(dims));
}

std::vector<Shape> parse_shapes(const std::string& text, std::span<const Dimension> dimensions) {
  std::vector<Shape> shapes;
  for (const std::string& part : split(text, ';')) shapes.push_back(parse_shape(part, dimensions));
  if (shapes.empty()) shapes.push_back(parse_shape("", dimensions));
  return shapes;
}

}  // namespace fulcrum::replay
