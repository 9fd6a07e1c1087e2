#include "model/io/import/text_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace fulcrum::io {

void each_line(ByteSource& source,
               const std::function<bool(const std::string& line, std::size_t number)>& visit) {
  using Traits = std::char_traits<char>;
  std::string line;
  std::size_t number = 1;
  bool any = false;
  for (int c = source.sbumpc(); c != Traits::eof(); c = source.sbumpc()) {
    any = true;
    if (c == '\n') {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (!visit(line, number++)) return;
      line.clear();
      any = false;
    } else if (line.size() < kMaxLineBytes) {
      line += Traits::to_char_type(c);
    }
  }
  if (any) visit(line, number);
}

std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::vector<std::string_view> words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> result;
  while (true) {
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return result;
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    result.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

std::optional<double> number_of(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ',') digits += c;
  }
  double value = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace fulcrum::io
