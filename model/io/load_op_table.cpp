#include "model/io/load_op_table.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "model/io/data_dir.h"
#include "model/io/json_reader.h"

namespace fulcrum::io {
namespace {

constexpr std::array<std::string_view, 3> kAxes{"tokens", "width", "extent"};
constexpr double kLongest = 1e3;  // seconds of one execution

OpTable read_table(JsonObject& entry) {
  OpTable table;
  table.op = entry.string("op");
  std::size_t size = 1;
  for (std::size_t axis = 0; axis < kAxes.size(); ++axis) {
    table.knots[axis] = entry.numbers(kAxes[axis], kNonNegative);
    const std::vector<double>& knots = table.knots[axis];
    if (knots.empty() ||
        std::adjacent_find(knots.begin(), knots.end(), std::greater_equal<>()) != knots.end()) {
      entry.problem(kAxes[axis], "is not a rising list", "at least one number, each larger");
    }
    size *= knots.size();
  }
  table.seconds = entry.numbers("seconds", Range{1e-9, kLongest});
  if (table.seconds.size() != size) {
    entry.problem("seconds", "holds " + std::to_string(table.seconds.size()) + " numbers",
                  std::to_string(size) + ": tokens x width x extent");
  }
  table.log_sigma = entry.number("log_sigma", Range{0.0, 5.0});
  table.sigma_seconds = entry.number("sigma_seconds", Range{0.0, 1.0});
  entry.ignore("median_standard_error");
  entry.ignore("num_throttled");
  return table;
}

}  // namespace

std::string op_tables_path(const std::string& hardware) {
  return data_dir() + "/calibration/op_tables/" + hardware + ".json";
}

OpTables load_op_tables(const std::string& path) {
  const nlohmann::json document = read_json_file(path);
  std::vector<InputProblem> problems;
  JsonObject object(document, path, "", problems);
  throw_if_any(problems);
  OpTables result;
  result.file = path;
  object.schema("fulcrum/op_tables/1");
  result.hardware = object.string("hardware");
  const std::string source = object.string("source");
  for (const std::string_view key : {"date", "git_sha", "model"}) object.ignore(key);
  object.objects("measurements", [](JsonObject& file) {
    for (const std::string_view key : {"file", "sha256", "num_records"}) file.ignore(key);
  });
  object.objects("ops", [&](JsonObject& entry) {
    auto table = std::make_shared<OpTable>(read_table(entry));
    table->source = source;
    if (!result.tables.emplace(table->op, table).second) {
      entry.problem("op", "\"" + table->op + "\" stands twice", "one table per op");
    }
  });
  object.reject_unknown();
  throw_if_any(problems);
  return result;
}

}  // namespace fulcrum::io
