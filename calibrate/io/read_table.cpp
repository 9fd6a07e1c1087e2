#include "calibrate/io/read_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "calibrate/io/sha256.h"
#include "calibrate/io/table_kinds.h"
#include "model/errors.h"

namespace fulcrum::calibrate::io {
namespace {

/// What spreadsheet programs put in front of UTF-8.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

using Fields = std::vector<std::string_view>;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// Splits on commas; surrounding double quotes are taken off. The tables hold no quoted commas.
void split(std::string_view line, Fields& fields) {
  fields.clear();
  for (;;) {
    const auto comma = line.find(',');
    std::string_view field = trim(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
      field = field.substr(1, field.size() - 2);
    }
    fields.push_back(field);
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::size_t> find(const Fields& header, std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

/// The kind whose columns the header has; the tables differ in them, so the name is not needed.
const TableKind* find_kind(const Fields& header) {
  for (const TableKind& kind : table_kinds()) {
    const bool complete =
        std::all_of(kind.number_columns.begin(), kind.number_columns.end(),
                    [&](std::string_view column) { return find(header, column).has_value(); });
    if (complete && (kind.dtype_column.empty() || find(header, kind.dtype_column)) &&
        (kind.label_column.empty() || find(header, kind.label_column))) {
      return &kind;
    }
  }
  return nullptr;
}

/// <system>__<family>__<engine>__<version>__<table>.csv
struct NameParts {
  std::string device, engine, version, table;
};

NameParts parse_name(const std::string& file) {
  std::string stem = file.substr(file.find_last_of('/') + 1);
  if (stem.ends_with(".csv")) stem.resize(stem.size() - 4);
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = stem.find("__", begin);
    parts.push_back(stem.substr(begin, end - begin));
    if (end == std::string::npos) break;
    begin = end + 2;
  }
  if (parts.size() == 5) return {parts[0], parts[2], parts[3], parts[4]};
  return {};
}

/// Finds or makes the series of a key; rows of one series stand together, so the last is tried
/// first.
class SeriesIndex {
 public:
  explicit SeriesIndex(std::vector<Series>& series) : series_(series) {}

  Series& at(std::string_view op_name, std::string_view kernel_source, std::string_view dtype,
             const SeriesKey& common) {
    const auto matches = [&](const Series& s) {
      return s.key.kernel_source == kernel_source && s.key.dtype == dtype &&
             s.key.op_name == op_name && s.key.device == common.device &&
             s.key.engine == common.engine && s.key.engine_version == common.engine_version;
    };
    if (last_ < series_.size() && matches(series_[last_])) return series_[last_];
    for (last_ = 0; last_ < series_.size(); ++last_) {
      if (matches(series_[last_])) return series_[last_];
    }
    SeriesKey key = common;
    key.op_name = op_name;
    key.kernel_source = kernel_source;
    key.dtype = dtype;
    series_.push_back({std::move(key), {}});
    return series_.back();
  }

 private:
  std::vector<Series>& series_;
  std::size_t last_ = 0;
};

InputError bad_table(const std::string& file, std::string pointer, std::string message,
                     std::string allowed) {
  return InputError(InputProblem{file, std::move(pointer), std::move(message), std::move(allowed)});
}

}  // namespace

MeasurementTable parse_table(std::string_view text, const std::string& file,
                             const TableOrigin& origin) {
  MeasurementTable result;
  result.file = file;
  result.sha256 = sha256_hex(text);

  const auto next_line = [&text]() {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
  };
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Fields header;
  split(next_line(), header);
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (*find(header, header[i]) != i) {
      throw bad_table(file, "line 1", "has two columns \"" + std::string(header[i]) + "\"",
                      "each column once");
    }
  }
  const TableKind* kind = find_kind(header);
  const auto latency = find(header, "latency_ms");
  const auto op_column = find(header, "op_name");
  const auto source_column = find(header, "kernel_source");
  if (kind == nullptr || !latency || !source_column) {
    std::string names;
    for (const TableKind& known : table_kinds()) names += " " + std::string(known.table);
    throw bad_table(file, "line 1", "not the header of a known table",
                    "kernel_source, latency_ms and the columns of one of:" + names);
  }
  const NameParts name = parse_name(file);
  const auto framework_column = find(header, "framework");
  const auto version_column = find(header, "version");
  SeriesKey common;
  common.device = !origin.device.empty() ? origin.device : name.device;
  common.engine = !origin.engine.empty() ? origin.engine : name.engine;
  common.engine_version = !origin.engine_version.empty() ? origin.engine_version : name.version;
  common.table = kind->table;
  if (common.device.empty()) {
    throw bad_table(file, "file name", "does not say which device it was measured on",
                    "<system>__<family>__<engine>__<version>__<table>.csv, or name the device");
  }
  result.table = name.table.empty() ? std::string(kind->table) : name.table;
  result.device = common.device;

  std::vector<std::size_t> columns;
  for (const std::string_view column : kind->number_columns)
    columns.push_back(*find(header, column));
  const auto dtype_column =
      kind->dtype_column.empty() ? std::nullopt : find(header, kind->dtype_column);
  const auto label_column =
      kind->label_column.empty() ? std::nullopt : find(header, kind->label_column);

  SeriesIndex index(result.series);
  Fields fields;
  std::vector<double> numbers(columns.size());
  std::string why;
  for (std::uint32_t line_number = 2; !text.empty(); ++line_number) {
    const std::string_view line = next_line();
    if (trim(line).empty()) continue;
    ++result.num_rows;
    split(line, fields);
    const auto quarantine = [&](QuarantineReason reason, std::string detail) {
      result.quarantined.push_back({line_number, reason, std::move(detail)});
    };
    if (fields.size() != header.size()) {
      quarantine(QuarantineReason::kMalformed,
                 std::to_string(fields.size()) + " fields of " + std::to_string(header.size()));
      continue;
    }
    const auto milliseconds = to_number(fields[*latency]);
    if (!milliseconds) {
      quarantine(QuarantineReason::kMalformed,
                 "latency_ms '" + std::string(fields[*latency]) + "' is not a number");
      continue;
    }
    if (!std::isfinite(*milliseconds) || *milliseconds <= 0.0) {
      quarantine(QuarantineReason::kNotPositive, "latency_ms = " + std::string(fields[*latency]));
      continue;
    }
    bool usable = true;
    for (std::size_t c = 0; usable && c < columns.size(); ++c) {
      const auto value = to_number(fields[columns[c]]);
      // A context length of 0 is a first token; all other sizes must be positive.
      const bool may_be_zero = kind->number_columns[c] == "step";
      if (!value || !std::isfinite(*value) || *value < 0.0 || (*value == 0.0 && !may_be_zero)) {
        quarantine(
            value ? QuarantineReason::kNotPositive : QuarantineReason::kMalformed,
            std::string(kind->number_columns[c]) + " = '" + std::string(fields[columns[c]]) + "'");
        usable = false;
      } else {
        numbers[c] = *value;
      }
    }
    if (!usable) continue;
    const std::string_view op_name = op_column ? fields[*op_column] : std::string_view();
    const std::string_view dtype = dtype_column ? fields[*dtype_column] : std::string_view();
    const std::string_view label = label_column ? fields[*label_column] : std::string_view();
    std::optional<Shape> shape = kind->build(numbers, label, op_name, dtype, why);
    if (!shape) {
      quarantine(QuarantineReason::kMalformed, "unknown " + why);
      continue;
    }
    if (origin.engine.empty() && framework_column) {
      common.engine = fields[*framework_column];
      std::transform(common.engine.begin(), common.engine.end(), common.engine.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
    if (origin.engine_version.empty() && version_column) {
      common.engine_version = fields[*version_column];
    }
    if (kind->table == kAttentionModuleTable) common.table = std::string(op_name) + "_perf";
    Series& series = index.at(op_name, fields[*source_column], dtype, common);
    series.records.push_back({std::move(*shape), *milliseconds * 1e-3, line_number});
  }
  if (result.num_rows == 0) {
    throw bad_table(file, "", "the table has no rows", "at least one data row");
  }
  return result;
}

MeasurementTable read_table(const std::string& path, const TableOrigin& origin) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path, ignored))
    throw bad_table(path, "", "cannot be opened", "a readable CSV file");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return parse_table(text, path, origin);
}

}  // namespace fulcrum::calibrate::io
