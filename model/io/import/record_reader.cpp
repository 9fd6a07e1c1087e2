#include "model/io/import/record_reader.h"

#include <charconv>
#include <cmath>

#include "model/io/json_reader.h"

namespace fulcrum::io {

using nlohmann::json;

namespace {

/// Beyond this a value is damage, not a measurement; it also keeps later products finite.
constexpr double kLargestValue = 1e18;

std::optional<double> number_in(const std::string& text) {
  double x = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return x;
}

}  // namespace

const json* RecordReader::find(std::string_view pointer) const {
  const json* at = &value_;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string_view key = pointer.substr(0, end);
    pointer.remove_prefix(end);
    if (at->is_object()) {
      const auto found = at->find(key);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else if (at->is_array()) {
      std::size_t index = 0;
      const auto [last, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      if (error != std::errc() || last != key.data() + key.size() || index >= at->size()) {
        return nullptr;
      }
      at = &(*at)[index];
    } else {
      return nullptr;
    }
  }
  return at->is_null() ? nullptr : at;
}

void RecordReader::problem(std::string_view pointer, std::string message,
                           std::string allowed) const {
  const std::string gap = place_.empty() || place_.front() == '/' ? "" : " ";
  problems_.push_back(
      {file_, place_ + gap + std::string(pointer), std::move(message), std::move(allowed)});
}

std::optional<double> RecordReader::number(std::string_view pointer) const {
  const json* value = find(pointer);
  if (value == nullptr) return std::nullopt;
  std::optional<double> x;
  if (value->is_number()) {
    x = value->get<double>();
  } else if (value->is_string()) {
    const std::string& text = value->get_ref<const std::string&>();
    if (text.empty() || text == "inf" || text == "nan" || text == "N/A") return std::nullopt;
    x = number_in(text);
  }
  if (!x || !(*x >= 0.0 && *x <= kLargestValue)) {
    problem(pointer, "is " + found(*value), "a number from 0 to 1e18, or null");
    return std::nullopt;
  }
  return x;
}

std::optional<double> RecordReader::positive(std::string_view pointer) const {
  const std::optional<double> x = number(pointer);
  return x && *x > 0.0 ? x : std::nullopt;
}

std::optional<double> RecordReader::first_number(
    std::initializer_list<std::string_view> pointers) const {
  for (const std::string_view pointer : pointers) {
    if (const std::optional<double> x = number(pointer)) return x;
  }
  return std::nullopt;
}

std::optional<double> RecordReader::first_positive(
    std::initializer_list<std::string_view> pointers) const {
  for (const std::string_view pointer : pointers) {
    if (const std::optional<double> x = positive(pointer)) return x;
  }
  return std::nullopt;
}

std::string RecordReader::text(std::string_view pointer) const {
  const json* value = find(pointer);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number() || value->is_boolean()) return value->dump();
  problem(pointer, "is " + found(*value), "a string");
  return {};
}

std::string RecordReader::first_text(std::initializer_list<std::string_view> pointers) const {
  for (const std::string_view pointer : pointers) {
    const json* value = find(pointer);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
  }
  return {};
}

std::vector<double> RecordReader::fractions(std::string_view pointer) const {
  const json* value = find(pointer);
  if (value == nullptr) return {};
  std::vector<double> result;
  bool good = value->is_array();
  if (good) {
    for (const json& element : *value) {
      good = good && element.is_number() && element.get<double>() >= 0.0 &&
             element.get<double>() <= 1.0;
      if (good) result.push_back(element.get<double>());
    }
  }
  if (!good) {
    problem(pointer, "is " + found(*value), "an array of numbers from 0 to 1");
    return {};
  }
  return result;
}

}  // namespace fulcrum::io
