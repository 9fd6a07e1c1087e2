// Strict reading of JSON objects: every problem of a file is gathered with its JSON pointer, and
// unknown keys are problems. Readers return defaults after recording a problem, so that one pass
// finds all of them; the caller throws once at the end (throw_if_any).
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/errors.h"
#include "model/provenance.h"

namespace fulcrum::io {

/// Reads and parses a file. Throws InputError: unreadable, not JSON (with line and column),
/// duplicate key, number out of range.
nlohmann::json read_json_file(const std::string& path);

/// Parses text; `file` names it in errors.
nlohmann::json parse_json(const std::string& text, const std::string& file);

/// Closed or half-open interval a number must lie in.
struct Range {
  double lower;
  double upper;
  bool lower_open = false;
  std::string text() const;
  bool contains(double x) const { return (lower_open ? x > lower : x >= lower) && x <= upper; }
};
inline constexpr double kHuge = 1e18;
inline constexpr Range kPositive{0.0, kHuge, true};
inline constexpr Range kNonNegative{0.0, kHuge};
inline constexpr Range kFraction{0.0, 1.0};

class JsonObject {
 public:
  JsonObject(const nlohmann::json& value, std::string file, std::string pointer,
             std::vector<InputProblem>& problems);

  bool has(std::string_view key) const;
  double number(std::string_view key, Range range);
  double number_or(std::string_view key, Range range, double fallback);
  std::optional<double> optional_number(std::string_view key, Range range);
  int integer(std::string_view key, Range range);
  int integer_or(std::string_view key, Range range, int fallback);
  bool boolean_or(std::string_view key, bool fallback);
  std::string string(std::string_view key);
  std::string string_or(std::string_view key, std::string fallback);
  /// Index of the string among `allowed`.
  std::size_t choice(std::string_view key, std::span<const std::string_view> allowed);
  std::size_t choice_or(std::string_view key, std::span<const std::string_view> allowed,
                        std::size_t fallback);
  std::vector<double> numbers(std::string_view key, Range range);
  std::vector<double> numbers_or(std::string_view key, Range range, std::vector<double> fallback);
  /// {"value":..,"basis":..,"source":..[,"note":..][,"standard_error":..]}
  Sourced sourced(std::string_view key, Range range);
  std::optional<Sourced> optional_sourced(std::string_view key, Range range);
  /// Calls `read` on the object under `key`; a missing or non-object value is a problem.
  void object(std::string_view key, const std::function<void(JsonObject&)>& read);
  void optional_object(std::string_view key, const std::function<void(JsonObject&)>& read);
  /// Calls `read` on each element of the array of objects under `key`.
  void objects(std::string_view key, const std::function<void(JsonObject&)>& read);
  /// Calls `read(name, object)` on each member; for maps whose keys are names.
  void each_member(const std::function<void(const std::string&, const nlohmann::json&)>& read);
  /// The raw value under a key, marked as known; nullptr when absent.
  const nlohmann::json* raw(std::string_view key);
  /// Marks a key as known without reading it.
  void ignore(std::string_view key);
  /// Requires "schema" to be exactly this.
  void schema(std::string_view expected);
  /// Records a problem at `key` (empty: at the object itself).
  void problem(std::string_view key, std::string message, std::string allowed = {});
  /// Records every key that was neither read nor ignored.
  void reject_unknown();

  std::string pointer_to(std::string_view key) const;
  const std::string& file() const { return file_; }
  std::vector<InputProblem>& problems() { return problems_; }

 private:
  const nlohmann::json* find(std::string_view key);
  const nlohmann::json* require(std::string_view key, std::string_view what);

  const nlohmann::json& value_;
  std::string file_;
  std::string pointer_;
  std::vector<InputProblem>& problems_;
  std::set<std::string, std::less<>> known_;
};

/// Short rendering of a JSON value for messages ("found ...").
std::string found(const nlohmann::json& value);

/// Throws InputError when any problem was gathered.
void throw_if_any(const std::vector<InputProblem>& problems);

/// The nearest of `names` by edit distance, when near enough to be a slip of the pen.
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> names);

}  // namespace fulcrum::io
