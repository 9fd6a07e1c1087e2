// Plain-text tables: aligned columns, bars, colour only on a terminal.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace fulcrum::cli {

/// What the terminal can show.
struct TerminalStyle {
  bool colour = false;  ///< a terminal, and NO_COLOR unset
  bool unicode = false;
  int width = 120;  ///< of the terminal; this where output goes to a file

  static TerminalStyle of_stdout();
};

enum class Align { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kRight;
    bool shrinks = false;  ///< cut first when the line is too wide
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print(std::ostream& out, const TerminalStyle& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A bar of `fraction` of `width` cells.
std::string bar(double fraction, int width, const TerminalStyle& style);
std::string bold(const std::string& text, const TerminalStyle& style);
std::string dim(const std::string& text, const TerminalStyle& style);

/// Three significant digits with a fitting unit: "1.23 ms", "45.6 us", "12.0 s"; zero is "-".
std::string format_seconds(double seconds);
/// "39.9 GB" (decimal).
std::string format_bytes(double bytes);
/// Three significant digits.
std::string format_number(double value);
/// Whole numbers without a decimal point.
std::string format_count(double count);
/// "63.2 %"
std::string format_percent(double fraction);

}  // namespace fulcrum::cli
