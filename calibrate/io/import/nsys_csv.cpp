#include "calibrate/io/import/nsys_csv.h"

#include <cmath>
#include <map>

#include "model/errors.h"
#include "model/io/import/text_lines.h"

namespace fulcrum::calibrate::io {
namespace {

using fulcrum::io::csv_fields;
using fulcrum::io::each_line;
using fulcrum::io::number_of;

constexpr double kLongestSeconds = 1e6;
constexpr double kLatestSeconds = 4e9;
constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kMostLaunches = 1e12;

/// Columns by name without unit, and the unit of each in seconds.
struct Header {
  std::map<std::string, std::size_t> columns;
  std::vector<double> seconds_per_unit;
  bool has(const std::string& name) const { return columns.contains(name); }
};

Header parse_header(const std::vector<std::string>& fields) {
  Header header;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::string name = fields[i];
    double unit = 1e-9;  // reports before 2021.3 print nanoseconds without saying so
    const std::size_t open = name.find('(');
    if (open != std::string::npos) {
      const std::string text = name.substr(open + 1, name.find(')', open) - open - 1);
      if (text == "us") unit = 1e-6;
      if (text == "ms") unit = 1e-3;
      if (text == "s" || text == "sec") unit = 1.0;
      name = name.substr(0, open);
    }
    while (!name.empty() && name.back() == ' ') name.pop_back();
    header.columns.emplace(name, i);
    header.seconds_per_unit.push_back(unit);
  }
  return header;
}

class Row {
 public:
  Row(const Header& header, const std::vector<std::string>& fields, const std::string& file,
      std::size_t line)
      : header_(header), fields_(fields), file_(file), line_(line) {}

  std::string text(const std::string& column) const {
    const auto found = header_.columns.find(column);
    return found == header_.columns.end() || found->second >= fields_.size()
               ? std::string()
               : fields_[found->second];
  }
  double number(const std::string& column, double least, double most) const {
    const std::optional<double> x = number_of(text(column));
    if (!x || *x < least || *x > most) fail(column);
    return *x;
  }
  double seconds(const std::string& column, double least, double most) const {
    const std::optional<double> x = number_of(text(column));
    if (!x) fail(column);
    const double seconds = *x * header_.seconds_per_unit[header_.columns.at(column)];
    if (!(seconds >= least && seconds <= most)) fail(column);
    return seconds;
  }
  std::uint32_t id(const std::string& column) const {
    const std::optional<double> x = number_of(text(column));
    return x && *x >= 0.0 && *x <= 4294967295.0 ? static_cast<std::uint32_t>(*x) : 0U;
  }

 private:
  [[noreturn]] void fail(const std::string& column) const {
    throw InputError({file_, "line " + std::to_string(line_),
                      "column \"" + column + "\" is \"" + text(column).substr(0, 40) + "\"",
                      "a number in range"});
  }
  const Header& header_;
  const std::vector<std::string>& fields_;
  const std::string& file_;
  std::size_t line_;
};

void add_total(const Row& row, NsysCsv& result) {
  KernelTotal total;
  total.name = row.text("Name");
  total.count = row.number("Instances", 0.0, kMostLaunches);
  total.seconds = row.seconds("Total Time", 0.0, kLongestSeconds);
  result.totals.push_back(std::move(total));
}

void add_activity(const Row& row, NsysCsv& result) {
  const double start = row.seconds("Start", -kLatestSeconds, kLatestSeconds);
  const double duration = row.seconds("Duration", 0.0, kLongestSeconds);
  std::string device = row.text("Device");
  if (device.empty()) device = "GPU 0";
  result.trace.add({.start_ns = std::llround(start * kNanosecondsPerSecond),
                    .duration_ns = std::llround(duration * kNanosecondsPerSecond),
                    .name = result.trace.name_index(row.text("Name")),
                    .stream = row.id("Strm"),
                    .launch = row.id("CorrId"),
                    .device = result.trace.device_index(device),
                    .in_graph = false});
}

}  // namespace

NsysCsv read_nsys_csv(fulcrum::io::ByteSource& source) {
  NsysCsv result;
  std::optional<Header> header;
  bool totals = false;
  each_line(source, [&](const std::string& line, std::size_t number) {
    const std::vector<std::string> fields = csv_fields(line);
    if (!header) {
      Header candidate = parse_header(fields);
      totals = candidate.has("Total Time") && candidate.has("Instances") && candidate.has("Name");
      const bool activities =
          candidate.has("Start") && candidate.has("Duration") && candidate.has("Name");
      if (totals || activities) header = std::move(candidate);
      return true;
    }
    if (line.empty()) return false;  // another report may follow
    const Row row(*header, fields, source.name(), number);
    totals ? add_total(row, result) : add_activity(row, result);
    return true;
  });
  if (!header) {
    throw InputError({source.name(), "", "holds no report of GPU kernels",
                      "nsys stats --format csv --report cuda_gpu_kern_sum or cuda_gpu_trace"});
  }
  if (result.totals.empty() && result.trace.activities().empty()) {
    throw InputError({source.name(), "", "holds a header and no kernel", ""});
  }
  return result;
}

}  // namespace fulcrum::calibrate::io
