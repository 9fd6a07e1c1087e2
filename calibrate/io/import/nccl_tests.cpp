#include "calibrate/io/import/nccl_tests.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "model/errors.h"
#include "model/io/import/record_reader.h"
#include "model/io/import/text_lines.h"

namespace fulcrum::calibrate::io {
namespace {

using fulcrum::io::each_line;
using fulcrum::io::number_of;
using fulcrum::io::words;

constexpr double kMillisecondsPerMicrosecond = 1e-3;
constexpr double kMostMicroseconds = 1e9;
constexpr double kMostBytes = 1e15;

struct Operation {
  std::string_view program;  ///< part of the program's name
  std::string_view table_name;
};
constexpr std::array<Operation, 4> kOperations = {{{"all_reduce", "all_reduce"},
                                                   {"all_gather", "all_gather"},
                                                   {"reduce_scatter", "reduce_scatter"},
                                                   {"alltoall", "alltoall"}}};

struct Type {
  std::string_view nccl_name;
  std::string_view table_name;
  double bytes;
};
constexpr std::array<Type, 7> kTypes = {{{"half", "half", 2},
                                         {"bfloat16", "bfloat16", 2},
                                         {"float", "float", 4},
                                         {"int8", "int8", 1},
                                         {"uint8", "int8", 1},
                                         {"f8e4m3", "fp8", 1},
                                         {"f8e5m2", "fp8", 1}}};

/// What is gathered before the operation is known.
struct Measured {
  double size_bytes = 0.0;
  std::string type;
  std::string redop;
  std::optional<double> microseconds{};
  std::optional<double> bus_over_algorithm{};
};

struct Run {
  std::vector<Measured> rows;
  std::string operation;
  std::string version;
  std::set<std::string> gpus;
  int num_ranks = 0;
  std::size_t num_wrong = 0;
};

std::string operation_in(std::string_view text) {
  for (const Operation& operation : kOperations) {
    if (text.find(operation.program) != std::string_view::npos) {
      return std::string(operation.table_name);
    }
  }
  return {};
}

/// 22809 -> "2.28.9" (nccl.h, NCCL_VERSION since 2.9).
std::string version_text(double code) {
  if (!(code >= 10'000.0 && code <= 999'999.0)) return {};
  const auto number = static_cast<long>(code);
  return std::to_string(number / 10'000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

/// Bus over algorithm bandwidth from the last rows, where rounding matters least.
std::string operation_from_ratio(const Run& run) {
  const double n = run.num_ranks;
  for (auto row = run.rows.rbegin(); row != run.rows.rend() && n > 1.0; ++row) {
    if (!row->bus_over_algorithm) continue;
    constexpr double kTolerance = 0.05;
    if (std::abs(*row->bus_over_algorithm - 2.0 * (n - 1.0) / n) < kTolerance) return "all_reduce";
    if (std::abs(*row->bus_over_algorithm - (n - 1.0) / n) < kTolerance && row->redop == "sum") {
      return "reduce_scatter";
    }
    return {};
  }
  return {};
}

ImportedTable table_of(const Run& run, const std::string& file, const std::string& operation) {
  std::string which = operation.empty() ? run.operation : operation;
  if (which.empty()) which = operation_in(file.substr(file.find_last_of('/') + 1));
  if (which.empty()) which = operation_from_ratio(run);
  if (operation_in(which).empty()) {
    throw InputError({file, "",
                      which.empty() ? "does not say which collective was run"
                                    : "\"" + which + "\" is no known collective",
                      "--operation all_reduce, all_gather, reduce_scatter or alltoall"});
  }
  if (run.num_ranks < 2) {
    throw InputError({file, "", "does not say how many ranks took part", "its list of devices"});
  }
  ImportedTable table{.engine = "nccl",
                      .engine_version = run.version,
                      .family = "comm",
                      .table = "nccl_perf",
                      .columns = {"op_name", "kernel_source", "nccl_dtype", "num_gpus",
                                  "message_size", "latency_ms"}};
  if (run.gpus.size() == 1) table.device = hardware_of_label(*run.gpus.begin());
  std::replace(table.device.begin(), table.device.end(), '-', '_');
  std::size_t num_skipped = 0;
  for (const Measured& row : run.rows) {
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const Type& t) { return t.nccl_name == row.type; });
    if (!row.microseconds || type == kTypes.end() || row.size_bytes <= 0.0) {
      ++num_skipped;
      continue;
    }
    table.rows.push_back({which, "NCCL", std::string(type->table_name),
                          std::to_string(run.num_ranks), table_number(row.size_bytes / type->bytes),
                          table_number(*row.microseconds * kMillisecondsPerMicrosecond)});
  }
  if (run.num_wrong > 0) {
    table.notes.push_back("rows with wrong results left out: " + std::to_string(run.num_wrong));
  }
  if (num_skipped > 0) {
    table.notes.push_back("rows without a time or of a type the tables do not hold, left out: " +
                          std::to_string(num_skipped));
  }
  if (run.gpus.size() > 1) table.notes.emplace_back("the ranks ran on GPUs of several models");
  if (table.rows.empty()) {
    throw InputError({file, "", "holds no usable row", "output of an nccl-tests program"});
  }
  return table;
}

/// Places of the columns, from the header line "#  size  count  type  redop  root  time  algbw ..".
struct Columns {
  int type = -1;
  int redop = -1;
  int time = -1;
  int algorithm = -1;
  int bus = -1;
  int wrong = -1;
  int in_place_time = -1;
  int count = 0;
};

std::optional<Columns> parse_columns(const std::vector<std::string_view>& fields) {
  Columns columns;
  std::vector<std::string_view> names(fields.begin(), fields.end());
  const auto size = std::find(names.begin(), names.end(), "size");
  if (size == names.end() || std::find(names.begin(), names.end(), "busbw") == names.end()) {
    return std::nullopt;
  }
  names.erase(names.begin(), size);
  const auto place = [&](std::initializer_list<std::string_view> wanted, int from = 0) {
    for (int i = from; i < static_cast<int>(names.size()); ++i) {
      for (const std::string_view name : wanted) {
        if (names[static_cast<std::size_t>(i)] == name) return i;
      }
    }
    return -1;
  };
  columns.type = place({"type"});
  columns.redop = place({"redop"});
  columns.time = place({"time", "cputime"});
  columns.algorithm = place({"algbw"});
  columns.bus = place({"busbw"});
  columns.wrong = place({"#wrong", "error"});
  columns.in_place_time = place({"time", "cputime"}, columns.time + 1);
  columns.count = static_cast<int>(names.size());
  if (columns.type < 0 || columns.time < 0) return std::nullopt;
  return columns;
}

void read_device_line(std::string_view line, Run& run) {
  ++run.num_ranks;
  const std::size_t bracket = line.rfind("] ");
  if (bracket != std::string_view::npos) run.gpus.insert(std::string(line.substr(bracket + 2)));
}

}  // namespace

ImportedTable read_nccl_text(fulcrum::io::ByteSource& source, const std::string& operation) {
  Run run;
  std::optional<Columns> columns;
  each_line(source, [&](const std::string& whole, std::size_t) {
    // mpirun may tag each line: "[1,0]<stdout>:#  size ..".
    const std::size_t tag = whole.find("<stdout>:");
    const std::string line = tag == std::string::npos ? whole : whole.substr(tag + 9);
    const std::vector<std::string_view> fields = words(line);
    if (fields.empty()) return true;
    if (fields[0].front() == '#') {
      if (auto found = parse_columns(fields)) columns = found;
      if (fields.size() > 2 && fields[1] == "Rank") read_device_line(line, run);
      const std::size_t starting = line.find("test starting: ");
      if (starting != std::string::npos) run.operation = operation_in(line.substr(starting));
      const std::size_t library = line.find("nccl-library=");
      if (library != std::string::npos) {
        const std::vector<std::string_view> rest =
            words(std::string_view(line).substr(library + 13));
        const auto code = rest.empty() ? std::nullopt : number_of(rest.front());
        if (code) run.version = version_text(*code);
      }
      return true;
    }
    const auto size = number_of(fields[0]);
    if (!columns || !size || *size < 0.0 || *size > kMostBytes) return true;
    const auto at = [&](int column) {
      return column >= 0 && column < static_cast<int>(fields.size())
                 ? fields[static_cast<std::size_t>(column)]
                 : std::string_view();
    };
    const auto time = [&](int column) {
      const auto x = number_of(at(column));
      return x && *x > 0.0 && *x <= kMostMicroseconds ? x : std::nullopt;
    };
    Measured row{.size_bytes = *size,
                 .type = std::string(at(columns->type)),
                 .redop = std::string(at(columns->redop))};
    row.microseconds = time(columns->time);
    if (!row.microseconds) row.microseconds = time(columns->in_place_time);
    const auto algorithm = number_of(at(columns->algorithm));
    const auto bus = number_of(at(columns->bus));
    constexpr double kEnoughDigits = 1.0;  // printed with two decimals
    if (algorithm && bus && *algorithm > kEnoughDigits) row.bus_over_algorithm = *bus / *algorithm;
    // Old versions print the largest error here, new ones a count of wrong elements.
    const auto wrong = number_of(at(columns->wrong));
    if (wrong && *wrong >= 1.0) {
      ++run.num_wrong;
    } else {
      run.rows.push_back(std::move(row));
    }
    return true;
  });
  return table_of(run, source.name(), operation);
}

ImportedTable read_nccl_json(const nlohmann::json& document, const std::string& file,
                             const std::string& operation) {
  std::vector<InputProblem> problems;
  const fulcrum::io::RecordReader root(document, file, "", problems);
  Run run;
  run.version = version_text(root.number("/nccl_version").value_or(0.0));
  run.operation = operation_in(root.first_text({"/args/0"}));
  if (const nlohmann::json* devices = root.find("/config/devices"); devices != nullptr) {
    for (const nlohmann::json& device : *devices) {
      const fulcrum::io::RecordReader r(device, file, "/config/devices", problems);
      ++run.num_ranks;
      run.gpus.insert(r.text("/device_info"));
    }
  }
  const nlohmann::json* results = root.find("/results");
  if (results == nullptr || !results->is_array()) {
    throw InputError({file, "/results", "is missing", "JSON of an nccl-tests program"});
  }
  std::size_t index = 0;
  for (const nlohmann::json& value : *results) {
    const std::string place = "/results/" + std::to_string(index++);
    const fulcrum::io::RecordReader r(value, file, place, problems);
    if (!value.is_object()) {
      r.problem("", "is no object", "a result");
      continue;
    }
    Measured row{.size_bytes = r.number("/size").value_or(0.0),
                 .type = r.text("/type"),
                 .redop = r.text("/redop")};
    row.microseconds = r.first_positive(
        {"/out_of_place/time", "/out_of_place/cpu_time", "/in_place/time", "/in_place/cpu_time"});
    const auto algorithm = r.positive("/out_of_place/alg_bw");
    const auto bus = r.positive("/out_of_place/bus_bw");
    if (algorithm && bus) row.bus_over_algorithm = *bus / *algorithm;
    if (r.number("/out_of_place/nwrong").value_or(0.0) >= 1.0) {
      ++run.num_wrong;
    } else {
      run.rows.push_back(std::move(row));
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return table_of(run, file, operation);
}

}  // namespace fulcrum::calibrate::io
