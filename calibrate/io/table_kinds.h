// The table forms of aiconfigurator that the fit knows: columns and how a row becomes a shape.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/record.h"

namespace fulcrum::calibrate::io {

/// Columns of one table kind: the numbers a shape needs, in the order its builder takes them, and
/// the column that holds the format.
struct TableKind {
  std::string_view table;
  std::string_view dtype_column;
  std::vector<std::string_view> number_columns;
  /// Builds the shape; nullopt if a label is unknown (then `why` says which).
  std::optional<Shape> (*build)(std::span<const double> numbers, std::string_view label,
                                std::string_view op_name, std::string_view dtype,
                                std::string& why) = nullptr;
  std::string_view label_column;  ///< distribution or model; empty if none
};

/// Attention modules and their parts share one form; each op_name is a table of its own,
/// <op_name>_perf.
inline constexpr std::string_view kAttentionModuleTable = "dsv4_*_perf";

/// All forms; a header matches at most one.
const std::vector<TableKind>& table_kinds();

/// Whole text as a number; nullopt if any of it is not.
std::optional<double> to_number(std::string_view text);

}  // namespace fulcrum::calibrate::io
