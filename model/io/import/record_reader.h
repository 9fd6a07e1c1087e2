// Lenient reading of other programs' JSON: unknown keys are theirs to add, null means not stated,
// but a known key of a wrong type is a problem.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/errors.h"

namespace fulcrum::io {

class RecordReader {
 public:
  RecordReader(const nlohmann::json& value, std::string file, std::string place,
               std::vector<InputProblem>& problems)
      : value_(value), file_(std::move(file)), place_(std::move(place)), problems_(problems) {}

  /// The value at a JSON pointer ("/a/b"); null where absent.
  const nlohmann::json* find(std::string_view pointer) const;
  bool has(std::string_view pointer) const { return find(pointer) != nullptr; }
  /// A finite number >= 0, also where written as a string ("8", "inf" is absent).
  std::optional<double> number(std::string_view pointer) const;
  /// As number(); absent also where zero, which clients write for "no sample".
  std::optional<double> positive(std::string_view pointer) const;
  /// The first of several names under which versions wrote one value.
  std::optional<double> first_number(std::initializer_list<std::string_view> pointers) const;
  std::optional<double> first_positive(std::initializer_list<std::string_view> pointers) const;
  /// A string, or a number rendered; "" where absent.
  std::string text(std::string_view pointer) const;
  std::string first_text(std::initializer_list<std::string_view> pointers) const;
  /// Numbers in [0, 1]; empty where absent.
  std::vector<double> fractions(std::string_view pointer) const;
  void problem(std::string_view pointer, std::string message, std::string allowed) const;

 private:
  const nlohmann::json& value_;
  std::string file_;
  std::string place_;  ///< prefix of pointers in messages
  std::vector<InputProblem>& problems_;
};

}  // namespace fulcrum::io
