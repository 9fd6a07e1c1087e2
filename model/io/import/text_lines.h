// Lines and fields of text that other programs print.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/io/import/byte_source.h"

namespace fulcrum::io {

/// Longest line looked at; of longer ones the rest is skipped.
inline constexpr std::size_t kMaxLineBytes = 1 << 20;

/// Calls `visit(line, number)` for each line, without its line end, from 1. `visit` returns false
/// to stop.
void each_line(ByteSource& source,
               const std::function<bool(const std::string& line, std::size_t number)>& visit);

/// Fields of one CSV line, quotes removed (RFC 4180, within one line).
std::vector<std::string> csv_fields(std::string_view line);

/// Words separated by blanks.
std::vector<std::string_view> words(std::string_view line);

/// The whole text as a finite number, thousands separators ("1,234") allowed.
std::optional<double> number_of(std::string_view text);

}  // namespace fulcrum::io
