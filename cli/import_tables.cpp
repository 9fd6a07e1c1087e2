// Kernel tables for `fulcrum import`.
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/import_options.h"
#include "cli/output_file.h"
#include "cli/table.h"
#include "model/errors.h"
#include "model/io/valid_text.h"

namespace fulcrum::cli {

namespace po = boost::program_options;

namespace {

void print_notes(const calibrate::io::ImportedTable& table) {
  for (const std::string& note : table.notes) std::cerr << "note: " << note << '\n';
}

}  // namespace

void write_table_files(const std::vector<calibrate::io::ImportedTable>& tables,
                       const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error(folder + ": " + error.message());
  for (const auto& table : tables) {
    print_notes(table);
    const std::string path =
        (std::filesystem::path(folder) / calibrate::io::file_name(table)).string();
    write_file(path, calibrate::io::csv_text(table));
    std::cerr << "wrote " << path << '\n';
  }
}

int show_tables(const std::vector<calibrate::io::ImportedTable>& imported,
                const std::string& source, const po::variables_map& values) {
  std::vector<calibrate::io::ImportedTable> tables = imported;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (calibrate::io::ImportedTable& table : tables) {
    if (values.count("device") != 0) table.device = values["device"].as<std::string>();
    list.push_back({{"file", calibrate::io::file_name(table)},
                    {"device", table.device},
                    {"engine", table.engine},
                    {"engine_version", table.engine_version},
                    {"table", table.table},
                    {"columns", table.columns},
                    {"rows", table.rows},
                    {"notes", table.notes}});
  }
  if (values.count("output") != 0) {
    write_table_files(tables, values["output"].as<std::string>());
  } else {
    for (const auto& table : tables) print_notes(table);
  }
  if (values["json"].as<bool>()) {
    std::cout << nlohmann::ordered_json{{"schema", "fulcrum/kernel-tables/1"},
                                        {"source", io::valid_utf8(source)},
                                        {"tables", std::move(list)}}
                     .dump(1)
              << '\n';
    return 0;
  }
  const auto lines = static_cast<std::size_t>(values["lines"].as<unsigned>());
  for (const auto& table : tables) {
    std::cout << table.rows.size() << (table.rows.size() == 1 ? " row of " : " rows of ")
              << table.table << " on "
              << (table.device.empty() ? "an unknown GPU (--device NAME)" : table.device) << ", "
              << table.engine << (table.engine_version.empty() ? "" : " " + table.engine_version)
              << '\n';
    std::vector<Table::Column> columns;
    for (const std::string& column : table.columns) columns.push_back({column});
    Table printed(std::move(columns));
    for (std::size_t i = 0; i < table.rows.size() && i < lines; ++i) printed.add(table.rows[i]);
    printed.print(std::cout, TerminalStyle::of_stdout());
    if (table.rows.size() > lines) {
      std::cout << "(" << table.rows.size() - lines << " more)\n";
    }
  }
  if (values.count("output") == 0) {
    std::cout << "-o FOLDER writes them for `fulcrum calibrate`\n";
  }
  return 0;
}

}  // namespace fulcrum::cli
