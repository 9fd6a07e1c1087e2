#include "replay/collectives/summary.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace fulcrum::replay::collectives {
namespace {

std::string size_text(std::int64_t bytes) {
  constexpr std::int64_t kKibi = 1024;
  if (bytes >= kKibi * kKibi && bytes % (kKibi * kKibi) == 0) {
    return std::to_string(bytes / (kKibi * kKibi)) + "M";
  }
  if (bytes >= kKibi && bytes % kKibi == 0) return std::to_string(bytes / kKibi) + "K";
  return std::to_string(bytes);
}

/// "all_reduce nccl LL" -> block "all_reduce, graph", column "nccl LL".
std::pair<std::string, std::string> place_of(const CollectiveLine& line) {
  const std::size_t space = line.setting.find(' ');
  return {line.setting.substr(0, space) + ", " + line.launch + " (us)",
          space == std::string::npos ? line.setting : line.setting.substr(space + 1)};
}

}  // namespace

void Summary::add(const CollectiveLine& line) {
  if (line.delayed) return;
  if (!line.median_seconds) {
    problems_.push_back(line.setting + ": " + line.status + ": " + line.reason);
    return;
  }
  const auto [block_name, column] = place_of(line);
  Block& block = blocks_[block_name];
  if (std::find(block.settings.begin(), block.settings.end(), column) == block.settings.end()) {
    block.settings.push_back(column);
  }
  block.rows[line.bytes][column] = {*line.median_seconds, line.half_width_fraction.value_or(0.0),
                                    line.status == "ok"};
}

std::string Summary::text() const {
  std::string out;
  char cell_text[32];
  for (const auto& [name, block] : blocks_) {
    out += name + "\n" + std::string(8, ' ');
    for (const std::string& column : block.settings) {
      const std::size_t width = std::max<std::size_t>(column.size(), 9) + 3;
      out += std::string(width - column.size() - 1, ' ') + column + " ";
    }
    out += "\n";
    for (const auto& [bytes, row] : block.rows) {
      Cell best{std::numeric_limits<double>::infinity()};
      for (const auto& [column, cell] : row) {
        if (cell.sound && cell.seconds < best.seconds) best = cell;
      }
      const std::string label = size_text(bytes);
      out += std::string(8 - std::min<std::size_t>(8, label.size()), ' ') + label;
      for (const std::string& column : block.settings) {
        const std::size_t width = std::max<std::size_t>(column.size(), 9) + 3;
        const auto found = row.find(column);
        std::string text = "-";
        bool fastest = false;
        if (found != row.end()) {
          const Cell& cell = found->second;
          std::snprintf(cell_text, sizeof cell_text, "%.2f", 1e6 * cell.seconds);
          text = cell_text + std::string(cell.sound ? "" : "?");
          fastest = cell.sound && cell.seconds * (1.0 - cell.half_width_fraction) <=
                                      best.seconds * (1.0 + best.half_width_fraction);
        }
        out += std::string(width - 1 - text.size(), ' ') + text + (fastest ? "*" : " ");
      }
      out += "\n";
    }
    out += "\n";
  }
  if (!blocks_.empty()) {
    out += "* fastest, or not told apart from it; ? noisy or throttled, no basis for a fit\n";
  }
  for (const std::string& problem : problems_) out += problem + "\n";
  return out;
}

}  // namespace fulcrum::replay::collectives
