#include "calibrate/io/import/nsys_sqlite.h"

#include <sqlite3.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <set>

#include "model/errors.h"

namespace fulcrum::calibrate::io {
namespace {

/// Bound of one query's work, in virtual-machine steps between checks and in seconds overall.
constexpr int kStepsBetweenChecks = 100'000;
constexpr double kMostSeconds = 600.0;
constexpr std::int64_t kLatestNs = 4'000'000'000'000'000'000;
constexpr std::int64_t kLongestNs = 1'000'000'000'000'000;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct FinishStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinishStatement>;

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    sqlite3* database = nullptr;
    const int status = sqlite3_open_v2(path.c_str(), &database,
                                       SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    database_.reset(database);
    if (status != SQLITE_OK) fail("cannot be opened");
    restrict_queries();
  }

  /// A database in memory, which SQLite copies.
  Reader(std::string_view bytes, const std::string& name) : path_(name) {
    sqlite3* database = nullptr;
    const int status = sqlite3_open_v2(":memory:", &database,
                                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    database_.reset(database);
    if (status != SQLITE_OK) fail("cannot be opened");
    auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size() + 1));
    if (copy == nullptr) throw std::bad_alloc();
    std::memcpy(copy, bytes.data(), bytes.size());
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    if (sqlite3_deserialize(database, "main", copy, size, size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) !=
        SQLITE_OK) {
      fail("cannot be opened");
    }
    restrict_queries();
  }

  void restrict_queries() {
    // The schema of a hostile file may hold triggers and views with functions: run none of them.
    sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(database_.get(), SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_progress_handler(database_.get(), kStepsBetweenChecks, check_time, this);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError({path_, "", what + ": " + sqlite3_errmsg(database_.get()),
                      "an export of nsys export --type sqlite"});
  }

  Statement prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      fail("cannot be queried");
    }
    return Statement(statement);
  }

  bool next(const Statement& statement) {
    const int status = sqlite3_step(statement.get());
    if (status == SQLITE_ROW) return true;
    if (status != SQLITE_DONE) fail("cannot be read to its end");
    return false;
  }

  bool has_table(const std::string& table) {
    const Statement s =
        prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" + table + "'");
    return next(s);
  }

  std::set<std::string> columns(const std::string& table) {
    std::set<std::string> result;
    const Statement s = prepare("PRAGMA table_info(" + table + ")");
    while (next(s)) result.insert(text(s, 1));
    return result;
  }

  static std::string text(const Statement& statement, int column) {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), column));
    const int size = sqlite3_column_bytes(statement.get(), column);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
  }

  const std::string& path() const { return path_; }

 private:
  static int check_time(void* self) {
    const auto* reader = static_cast<const Reader*>(self);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - reader->begin_;
    return spent.count() > kMostSeconds ? 1 : 0;
  }

  std::string path_;
  Database database_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

struct ActivityTable {
  const char* table;
  const char* fixed_name;  ///< null: kernels, which carry a name
  bool whole_graph;
};
constexpr std::array<ActivityTable, 4> kTables = {{
    {"CUPTI_ACTIVITY_KIND_KERNEL", nullptr, false},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "Memcpy", false},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "Memset", false},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "[CUDA graph traced as a whole]", true},
}};

/// The column if the table has it, else a constant.
std::string column_or(const std::set<std::string>& columns, const char* name,
                      const char* fallback) {
  return columns.contains(name) ? "k." + std::string(name) : std::string(fallback);
}

std::uint32_t id_of(sqlite3_int64 x) {
  return x >= 0 && x <= 0xFFFFFFFFLL ? static_cast<std::uint32_t>(x) : 0U;
}

std::size_t read_table(Reader& reader, const ActivityTable& table, bool has_strings,
                       KernelTrace& trace) {
  const std::set<std::string> columns = reader.columns(table.table);
  if (!columns.contains("start") || !columns.contains("end")) {
    throw InputError({reader.path(), table.table, "lacks the column start or end",
                      "an export of nsys export --type sqlite"});
  }
  std::string name = "''";
  bool join = false;
  if (table.fixed_name == nullptr) {
    for (const char* candidate : {"demangledName", "shortName", "mangledName"}) {
      if (columns.contains(candidate) && has_strings) {
        name = "k." + std::string(candidate);
        join = true;
        break;
      }
    }
    if (!join && columns.contains("name")) {
      name = "k.name";
    } else if (!join) {
      throw InputError({reader.path(), table.table, "names no kernels",
                        "a column demangledName or shortName, and the table StringIds"});
    }
  }
  const std::string sql =
      "SELECT k.start, k.\"end\", " + column_or(columns, "deviceId", "0") + ", " +
      column_or(columns, "streamId", "0") + ", " + column_or(columns, "correlationId", "0") + ", " +
      column_or(columns, "graphNodeId", "NULL") + ", " + (join ? "s.value" : name) + " FROM " +
      table.table + " k" + (join ? " LEFT JOIN StringIds s ON s.id = " + name : "");
  const Statement s = reader.prepare(sql);
  std::size_t num_rows = 0;
  while (reader.next(s)) {
    const std::int64_t start = sqlite3_column_int64(s.get(), 0);
    const std::int64_t end = sqlite3_column_int64(s.get(), 1);
    if (start < -kLatestNs || start > kLatestNs || end < start || end - start > kLongestNs) {
      throw InputError({reader.path(), table.table,
                        "holds an activity that ends before it starts "
                        "or lasts for weeks",
                        ""});
    }
    std::string kernel = table.fixed_name != nullptr ? table.fixed_name : Reader::text(s, 6);
    if (kernel.empty()) kernel = "(unnamed)";
    const sqlite3_int64 node = sqlite3_column_int64(s.get(), 5);
    trace.add({.start_ns = start,
               .duration_ns = end - start,
               .name = trace.name_index(kernel),
               .stream = id_of(sqlite3_column_int64(s.get(), 3)),
               .launch = id_of(sqlite3_column_int64(s.get(), 4)),
               .device = trace.device_index(
                   "GPU " + std::to_string(id_of(sqlite3_column_int64(s.get(), 2)))),
               .in_graph = node != 0 || table.whole_graph});
    ++num_rows;
  }
  return num_rows;
}

KernelTrace read_all(Reader& reader) {
  KernelTrace trace;
  const bool has_strings = reader.has_table("StringIds");
  std::size_t num_whole_graphs = 0;
  for (const ActivityTable& table : kTables) {
    if (!reader.has_table(table.table)) continue;  // nsys creates tables when first needed
    const std::size_t num_rows = read_table(reader, table, has_strings, trace);
    if (table.whole_graph) num_whole_graphs = num_rows;
  }
  if (trace.activities().empty()) {
    throw InputError({reader.path(), "", "holds no GPU activity",
                      "a profile recorded with nsys profile --trace=cuda"});
  }
  if (num_whole_graphs > 0) {
    trace.notes.push_back(std::to_string(num_whole_graphs) +
                          " CUDA graph launches were traced as a whole; their kernels are known "
                          "after nsys profile --cuda-graph-trace=node");
  }
  return trace;
}

}  // namespace

KernelTrace read_nsys_sqlite(const std::string& path) {
  Reader reader(path);
  return read_all(reader);
}

KernelTrace parse_nsys_sqlite(std::string_view bytes, const std::string& name) {
  Reader reader(bytes, name);
  return read_all(reader);
}

}  // namespace fulcrum::calibrate::io
