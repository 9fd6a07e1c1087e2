// Reads measured op tables (schema fulcrum/op_tables/1, written by `calibrate --op-tables`).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/op_table.h"

namespace fulcrum::io {

struct OpTables {
  std::string file;
  std::string hardware;
  std::map<std::string, std::shared_ptr<const OpTable>, std::less<>> tables;  ///< by op
};

/// data/calibration/op_tables/<hardware>.json. Throws InputError: no such file, or a malformed one.
OpTables load_op_tables(const std::string& path);

/// Where the tables of a GPU would be.
std::string op_tables_path(const std::string& hardware);

}  // namespace fulcrum::io
