#include "model/io/json_reader.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <utility>

namespace fulcrum::io {
namespace {

using nlohmann::json;

constexpr std::string_view kBasisNames[] = {"datasheet", "measured", "fitted", "derived",
                                            "assumed"};

std::string short_number(double x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string join(std::span<const std::string_view> names) {
  std::string text;
  for (std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

/// Line and column of a byte offset, both from 1.
std::string place_of(const std::string& text, std::size_t byte) {
  const std::size_t end = std::min(byte, text.size());
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  const std::size_t start = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t column = start == std::string::npos ? end : end - start - 1;
  return "line " + std::to_string(line + 1) + ", column " + std::to_string(column);
}

}  // namespace

json parse_json(const std::string& text, const std::string& file) {
  std::vector<std::set<std::string>> scopes;
  std::string duplicate;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) scopes.emplace_back();
    if (event == json::parse_event_t::object_end) scopes.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!scopes.back().insert(key).second && duplicate.empty()) duplicate = key;
    }
    return true;
  };
  json value;
  try {
    value = json::parse(text, watch);
  } catch (const json::parse_error& error) {
    throw InputError({file, place_of(text, error.byte), "is not valid JSON", "one JSON value"});
  } catch (const json::exception&) {
    throw InputError({file, "", "holds a number that no double can represent", ""});
  }
  if (!duplicate.empty()) {
    throw InputError({file, "", "key \"" + duplicate + "\" appears twice in one object", ""});
  }
  return value;
}

json read_json_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError({path, "", "cannot be read", "a readable JSON file"});
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad() || (text.str().empty() && !in.eof() && in.fail())) {
    throw InputError({path, "", "cannot be read", "a readable JSON file"});
  }
  return parse_json(text.str(), path);
}

std::string Range::text() const {
  if (upper >= kHuge) return std::string(lower_open ? "> " : ">= ") + short_number(lower);
  return std::string(lower_open ? "> " : "") + short_number(lower) + " to " + short_number(upper);
}

JsonObject::JsonObject(const json& value, std::string file, std::string pointer,
                       std::vector<InputProblem>& problems)
    : value_(value), file_(std::move(file)), pointer_(std::move(pointer)), problems_(problems) {
  if (!value_.is_object()) problem("", "is " + found(value_), "an object");
}

bool JsonObject::has(std::string_view key) const {
  return value_.is_object() && value_.contains(key);
}

const json* JsonObject::find(std::string_view key) {
  known_.emplace(key);
  if (!value_.is_object()) return nullptr;
  const auto it = value_.find(key);
  return it == value_.end() ? nullptr : &*it;
}

const json* JsonObject::require(std::string_view key, std::string_view what) {
  const json* value = find(key);
  if (value == nullptr && value_.is_object()) {
    problem(key, "is missing", std::string(what));
  }
  return value;
}

double JsonObject::number(std::string_view key, Range range) {
  const json* value = require(key, "a number, " + range.text());
  if (value == nullptr) return range.contains(1.0) ? 1.0 : range.lower;
  if (!value->is_number() || !std::isfinite(value->get<double>()) ||
      !range.contains(value->get<double>())) {
    problem(key, "is " + found(*value), "a number, " + range.text());
    return range.contains(1.0) ? 1.0 : range.lower;
  }
  return value->get<double>();
}

double JsonObject::number_or(std::string_view key, Range range, double fallback) {
  return has(key) ? number(key, range) : (ignore(key), fallback);
}

std::optional<double> JsonObject::optional_number(std::string_view key, Range range) {
  if (!has(key) || value_.at(std::string(key)).is_null()) {
    ignore(key);
    return std::nullopt;
  }
  return number(key, range);
}

int JsonObject::integer(std::string_view key, Range range) {
  const double value = number(key, range);
  if (value != std::floor(value) || std::abs(value) > 2e9) {
    problem(key, "is " + short_number(value), "a whole number, " + range.text());
    return 1;
  }
  return static_cast<int>(value);
}

int JsonObject::integer_or(std::string_view key, Range range, int fallback) {
  return has(key) ? integer(key, range) : (ignore(key), fallback);
}

bool JsonObject::boolean_or(std::string_view key, bool fallback) {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    problem(key, "is " + found(*value), "true or false");
    return fallback;
  }
  return value->get<bool>();
}

std::string JsonObject::string(std::string_view key) {
  const json* value = require(key, "a string");
  if (value == nullptr) return {};
  if (!value->is_string()) {
    problem(key, "is " + found(*value), "a string");
    return {};
  }
  const auto& text = value->get_ref<const std::string&>();
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; })) {
    problem(key, "holds a control character", "printable text");
    return {};
  }
  return text;
}

std::string JsonObject::string_or(std::string_view key, std::string fallback) {
  return has(key) ? string(key) : (ignore(key), std::move(fallback));
}

std::size_t JsonObject::choice(std::string_view key, std::span<const std::string_view> allowed) {
  const json* value = require(key, join(allowed));
  if (value == nullptr) return 0;
  if (value->is_string()) {
    const auto it = std::find(allowed.begin(), allowed.end(), value->get<std::string>());
    if (it != allowed.end()) return static_cast<std::size_t>(it - allowed.begin());
  }
  problem(key, "is " + found(*value), join(allowed));
  return 0;
}

std::size_t JsonObject::choice_or(std::string_view key, std::span<const std::string_view> allowed,
                                  std::size_t fallback) {
  return has(key) ? choice(key, allowed) : (ignore(key), fallback);
}

std::vector<double> JsonObject::numbers(std::string_view key, Range range) {
  const json* value = require(key, "an array of numbers");
  std::vector<double> out;
  if (value == nullptr) return out;
  if (!value->is_array()) {
    problem(key, "is " + found(*value), "an array of numbers, each " + range.text());
    return out;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    const json& element = (*value)[i];
    if (!element.is_number() || !range.contains(element.get<double>())) {
      problems_.push_back({file_, pointer_to(key) + "/" + std::to_string(i), "is " + found(element),
                           "a number, " + range.text()});
    } else {
      out.push_back(element.get<double>());
    }
  }
  return out;
}

std::vector<double> JsonObject::numbers_or(std::string_view key, Range range,
                                           std::vector<double> fallback) {
  return has(key) ? numbers(key, range) : (ignore(key), std::move(fallback));
}

Sourced JsonObject::sourced(std::string_view key, Range range) {
  Sourced out;
  object(key, [&](JsonObject& entry) {
    out.value = entry.number("value", range);
    out.basis = static_cast<Basis>(entry.choice("basis", kBasisNames));
    out.source = entry.string("source");
    if (out.source.empty()) entry.problem("source", "is empty", "where the number comes from");
    out.note = entry.string_or("note", "");
    out.standard_error = entry.optional_number("standard_error", kNonNegative);
    if (out.basis == Basis::kFitted && !out.standard_error) {
      entry.problem("standard_error", "is missing", "a fitted number carries its standard error");
    }
  });
  return out;
}

std::optional<Sourced> JsonObject::optional_sourced(std::string_view key, Range range) {
  if (!has(key)) {
    ignore(key);
    return std::nullopt;
  }
  return sourced(key, range);
}

void JsonObject::object(std::string_view key, const std::function<void(JsonObject&)>& read) {
  const json* value = require(key, "an object");
  if (value == nullptr) return;
  JsonObject child(*value, file_, pointer_to(key), problems_);
  if (!value->is_object()) return;
  read(child);
  child.reject_unknown();
}

void JsonObject::optional_object(std::string_view key,
                                 const std::function<void(JsonObject&)>& read) {
  if (has(key)) {
    object(key, read);
  } else {
    ignore(key);
  }
}

void JsonObject::objects(std::string_view key, const std::function<void(JsonObject&)>& read) {
  const json* value = require(key, "an array of objects");
  if (value == nullptr) return;
  if (!value->is_array()) {
    problem(key, "is " + found(*value), "an array of objects");
    return;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    JsonObject child((*value)[i], file_, pointer_to(key) + "/" + std::to_string(i), problems_);
    if (!(*value)[i].is_object()) continue;
    read(child);
    child.reject_unknown();
  }
}

void JsonObject::each_member(const std::function<void(const std::string&, const json&)>& read) {
  if (!value_.is_object()) return;
  for (const auto& [key, value] : value_.items()) {
    known_.emplace(key);
    read(key, value);
  }
}

const json* JsonObject::raw(std::string_view key) { return find(key); }

void JsonObject::ignore(std::string_view key) { known_.emplace(key); }

void JsonObject::schema(std::string_view expected) {
  const json* value = require("schema", expected);
  if (value != nullptr && (!value->is_string() || value->get<std::string>() != expected)) {
    problem("schema", "is " + found(*value), std::string(expected));
  }
}

void JsonObject::problem(std::string_view key, std::string message, std::string allowed) {
  problems_.push_back({file_, pointer_to(key), std::move(message), std::move(allowed)});
}

void JsonObject::reject_unknown() {
  if (!value_.is_object()) return;
  const std::vector<std::string> names(known_.begin(), known_.end());
  for (const auto& [key, value] : value_.items()) {
    if (known_.contains(key)) continue;
    std::string allowed;
    if (const auto near = nearest_name(key, names)) allowed = "did you mean \"" + *near + "\"?";
    if (allowed.empty()) {
      const std::vector<std::string_view> views(names.begin(), names.end());
      allowed = join(views);
    }
    problem(key, "is not a known key", allowed);
  }
}

std::string JsonObject::pointer_to(std::string_view key) const {
  if (key.empty()) return pointer_.empty() ? "/" : pointer_;
  return pointer_ + "/" + escape_pointer(key);
}

std::string found(const json& value) {
  constexpr std::size_t kMaxShown = 60;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

void throw_if_any(const std::vector<InputProblem>& problems) {
  if (!problems.empty()) throw InputError(problems);
}

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> names) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : names) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t substitute = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace fulcrum::io
