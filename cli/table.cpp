#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fulcrum::cli {
namespace {

/// Characters on screen: UTF-8 continuation bytes take no column.
std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string cut(const std::string& text, std::size_t width) {
  if (columns_of(text) <= width) return text;
  std::string out;
  std::size_t used = 0;
  for (char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && used++ + 2 > width) break;
    out += c;
  }
  return out + "~";
}

std::string significant(double value) {
  char text[48];
  const double magnitude = std::abs(value);
  int decimals = 2;
  if (magnitude >= 99.95) {
    decimals = 0;
  } else if (magnitude >= 9.995) {
    decimals = 1;
  }
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace

TerminalStyle TerminalStyle::of_stdout() {
  TerminalStyle style;
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  style.colour = terminal && (no_colour == nullptr || *no_colour == '\0') &&
                 (kind == nullptr || std::strcmp(kind, "dumb") != 0);
  const char* locale = std::getenv("LC_ALL");
  if (locale == nullptr || *locale == '\0') locale = std::getenv("LC_CTYPE");
  if (locale == nullptr || *locale == '\0') locale = std::getenv("LANG");
  style.unicode = locale != nullptr && (std::strstr(locale, "UTF-8") != nullptr ||
                                        std::strstr(locale, "utf8") != nullptr);
  winsize size{};
  if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
    style.width = size.ws_col;
  }
  // Set by hand it wins over what the terminal says: shells do not export it.
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const long stated = std::strtol(columns, nullptr, 10);
    if (stated >= 40 && stated <= 1000) style.width = static_cast<int>(stated);
  }
  return style;
}

void Table::print(std::ostream& out, const TerminalStyle& style) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(columns_of(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::size_t total = 2 * (columns_.size() - 1);
  for (std::size_t width : widths) total += width;
  // The last column first: names that start a line are the last to be cut.
  for (std::size_t i = columns_.size(); i-- > 0;) {
    constexpr std::size_t kNarrowest = 10;
    const auto limit = static_cast<std::size_t>(style.width);
    if (!columns_[i].shrinks || total <= limit || widths[i] <= kNarrowest) continue;
    const std::size_t less = std::min(total - limit, widths[i] - kNarrowest);
    widths[i] -= less;
    total -= less;
  }
  const auto line = [&](const std::vector<std::string>& cells, bool header) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = cut(i < cells.size() ? cells[i] : "", widths[i]);
      const std::string pad(widths[i] - columns_of(cell), ' ');
      if (i != 0) text += "  ";
      text += columns_[i].align == Align::kRight ? pad + cell : cell + pad;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << (header ? dim(text, style) : text) << '\n';
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  line(titles, true);
  for (const auto& row : rows_) line(row, false);
}

std::string bar(double fraction, int width, const TerminalStyle& style) {
  const double cells = std::clamp(fraction, 0.0, 1.0) * width;
  std::string text;
  if (!style.unicode) return std::string(static_cast<std::size_t>(std::lround(cells)), '#');
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int full = static_cast<int>(cells);
  for (int i = 0; i < full; ++i) text += "█";
  text += kEighths[static_cast<int>((cells - full) * 8.0)];
  return text;
}

std::string bold(const std::string& text, const TerminalStyle& style) {
  return style.colour ? "\033[1m" + text + "\033[0m" : text;
}

std::string dim(const std::string& text, const TerminalStyle& style) {
  return style.colour ? "\033[2m" + text + "\033[0m" : text;
}

std::string format_seconds(double seconds) {
  if (seconds == 0.0) return "-";
  if (seconds >= 1.0) return significant(seconds) + " s";
  if (seconds >= 1e-3) return significant(seconds * 1e3) + " ms";
  return significant(seconds * 1e6) + " us";
}

std::string format_bytes(double bytes) {
  if (bytes >= 1e9) return significant(bytes / 1e9) + " GB";
  if (bytes >= 1e6) return significant(bytes / 1e6) + " MB";
  if (bytes >= 1e3) return significant(bytes / 1e3) + " kB";
  return bytes == 0.0 ? "0 B" : significant(bytes) + " B";
}

std::string format_number(double value) { return significant(value); }

std::string format_count(double count) {
  char text[32];
  std::snprintf(text, sizeof text, count == std::floor(count) ? "%.0f" : "%.1f", count);
  return text;
}

std::string format_percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * fraction);
  return text;
}

}  // namespace fulcrum::cli
